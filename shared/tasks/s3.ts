/**
 * What we use of S3's client. It is imported when it is needed, for it is the heaviest part of a cold start; by this
 * module, for a bundler keeps all of a package that is imported later, but of a module only what it names.
 */
export { GetObjectCommand, NoSuchKey, PutObjectCommand, S3Client } from "@aws-sdk/client-s3";
