package tlsprofile

import (
	"crypto/tls"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Field is a field of a [Config].
type Field int

// The fields.
const (
	FieldProfile Field = iota
	FieldMinVersion
	FieldCiphers
	FieldCurves
)

// UnknownError says that a name stands for nothing that there is.
type UnknownError struct {
	Field Field
	Value string
	Known []string
}

func (e *UnknownError) Error() string {
	return fmt.Sprintf("%q is not known; there are %s", e.Value, strings.Join(e.Known, ", "))
}

// versions have the names that Mozilla's guidelines give them.
func versions() map[string]uint16 {
	return map[string]uint16{
		"TLSv1.0": tls.VersionTLS10,
		"TLSv1.1": tls.VersionTLS11,
		"TLSv1.2": tls.VersionTLS12,
		"TLSv1.3": tls.VersionTLS13,
	}
}

// allCiphers have the names of IANA, as crypto/tls has. The suites of TLS 1.3 are among
// them: whoever lists what a server accepts lists them too, and they are accepted whether
// or not they are listed.
func allCiphers() map[string]uint16 {
	known := map[string]uint16{}
	for _, suite := range slices.Concat(tls.CipherSuites(), tls.InsecureCipherSuites()) {
		known[suite.Name] = suite.ID
	}
	return known
}

// allCurves have the names of IANA. Mozilla's guidelines have one of their own for P-256,
// and OpenSSL and Go have others for each of NIST's.
func allCurves() map[string]tls.CurveID {
	return map[string]tls.CurveID{
		"X25519MLKEM768":     tls.X25519MLKEM768,
		"SecP256r1MLKEM768":  tls.SecP256r1MLKEM768,
		"SecP384r1MLKEM1024": tls.SecP384r1MLKEM1024,
		"X25519":             tls.X25519,
		"secp256r1":          tls.CurveP256,
		"secp384r1":          tls.CurveP384,
		"secp521r1":          tls.CurveP521,
		"prime256v1":         tls.CurveP256,
		"P-256":              tls.CurveP256,
		"P-384":              tls.CurveP384,
		"P-521":              tls.CurveP521,
		"CurveP256":          tls.CurveP256,
		"CurveP384":          tls.CurveP384,
		"CurveP521":          tls.CurveP521,
	}
}

func lookUp[T any](field Field, name string, known map[string]T) (T, error) {
	value, ok := known[name]
	if !ok {
		return value, &UnknownError{Field: field, Value: name, Known: slices.Sorted(maps.Keys(known))}
	}
	return value, nil
}

// lookUpAll gives nil for no names.
func lookUpAll[T any](field Field, names []string, known map[string]T) ([]T, error) {
	var values []T
	for _, name := range names {
		value, err := lookUp(field, strings.TrimSpace(name), known)
		if err != nil {
			return nil, err
		}
		values = append(values, value)
	}
	return values, nil
}
