// Package signing signs images as cosign does, before and since version 3, for tests of who
// verifies them: with a key, with a certificate of an authority of one's own, and keyless, with
// an instance of Sigstore that lives in the test.
package signing
