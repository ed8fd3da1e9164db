/** What we use of the client of object stores. It is imported when it is needed: few invocations hand over artifacts. */
export { Objm } from "@nats-io/obj";
