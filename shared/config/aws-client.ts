/** How long a request to AWS may take to be answered, in milliseconds; three tries are within any function's timeout. */
const REQUEST_TIMEOUT_MS = 4_000;

/**
 * The settings of a client of AWS: a request that is not answered in time fails, and is repeated. Without
 * `throwOnRequestTimeout` the SDK only writes a line about it and waits on (AWS SDK for JavaScript,
 * NodeHttpHandlerOptions): a table that is silent would hold an invocation until Lambda ends it.
 *
 * @param requestTimeout in milliseconds
 */
export function awsClient(requestTimeout = REQUEST_TIMEOUT_MS) {
  return {
    maxAttempts: 3,
    requestHandler: { connectionTimeout: 1_000, requestTimeout, throwOnRequestTimeout: true },
  };
}
