// Package tlsprofile says how servers speak TLS: names of a profile, versions, cipher
// suites and curves -> a change to a tls.Config. It is pure.
//
// The profiles are those of Mozilla's guidelines for servers, as far as crypto/tls can
// express them: it has no Diffie-Hellman over finite fields, no cipher suite that
// Mozilla's list has with CBC and SHA-384, the suites of TLS 1.3 are not configured, and
// the order of preference is its own.
package tlsprofile
