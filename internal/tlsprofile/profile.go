package tlsprofile

import (
	"crypto/tls"
	"slices"
)

// Config is what is configured, as names. The zero value is none.
type Config struct {
	// Profile is old, intermediate, modern or custom.
	Profile string

	// MinVersion, Ciphers and Curves are of the profile custom. They have to be names that
	// are known whatever the profile. Without ciphers, or without curves, those of
	// crypto/tls are meant.
	MinVersion string
	Ciphers    []string
	Curves     []string
}

// The profiles.
const (
	Old          = "old"
	Intermediate = "intermediate"
	Modern       = "modern"
	Custom       = "custom"
)

// Profiles are all there are, from the one that lets most clients in.
func Profiles() []string { return []string{Old, Intermediate, Modern, Custom} }

// Profile is what a server accepts. A list that is nil leaves the choice to crypto/tls.
type Profile struct {
	minVersion uint16
	ciphers    []uint16
	curves     []tls.CurveID
}

// New reads what is configured. It fails with [*UnknownError].
func New(config Config) (Profile, error) {
	custom, err := customOf(config)
	if err != nil {
		return Profile{}, err
	}
	switch config.Profile {
	case Old:
		return Profile{tls.VersionTLS10, oldCiphers(), curves()}, nil
	case Intermediate:
		return Profile{tls.VersionTLS12, intermediateCiphers(), curves()}, nil
	case Modern:
		return Profile{minVersion: tls.VersionTLS13, curves: curves()}, nil
	case Custom:
		return custom, nil
	}
	return Profile{}, &UnknownError{Field: FieldProfile, Value: config.Profile, Known: Profiles()}
}

func customOf(config Config) (Profile, error) {
	version, err := lookUp(FieldMinVersion, config.MinVersion, versions())
	if err != nil {
		return Profile{}, err
	}
	ciphers, err := lookUpAll(FieldCiphers, config.Ciphers, allCiphers())
	if err != nil {
		return Profile{}, err
	}
	curves, err := lookUpAll(FieldCurves, config.Curves, allCurves())
	return Profile{version, ciphers, curves}, err
}

// Apply has a server accept no more than the profile.
func (p Profile) Apply(config *tls.Config) {
	config.MinVersion = p.minVersion
	config.CipherSuites = slices.Clone(p.ciphers)
	config.CurvePreferences = slices.Clone(p.curves)
}

// curves are those of each profile. A client that knows no key exchange that withstands
// quantum computers takes one of the others.
func curves() []tls.CurveID {
	return []tls.CurveID{tls.X25519MLKEM768, tls.X25519, tls.CurveP256, tls.CurveP384}
}

// intermediateCiphers are for TLS 1.2: authenticated encryption with forward secrecy.
func intermediateCiphers() []uint16 {
	return []uint16{
		tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
		tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
		tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
		tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
		tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
		tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
	}
}

// oldCiphers are for clients of a long time ago. Those without ECDHE or with 3DES need a
// certificate with an RSA key.
func oldCiphers() []uint16 {
	return append(intermediateCiphers(),
		tls.TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256,
		tls.TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256,
		tls.TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA,
		tls.TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA,
		tls.TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA,
		tls.TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA,
		tls.TLS_RSA_WITH_AES_128_GCM_SHA256,
		tls.TLS_RSA_WITH_AES_256_GCM_SHA384,
		tls.TLS_RSA_WITH_AES_128_CBC_SHA256,
		tls.TLS_RSA_WITH_AES_128_CBC_SHA,
		tls.TLS_RSA_WITH_AES_256_CBC_SHA,
		tls.TLS_RSA_WITH_3DES_EDE_CBC_SHA,
	)
}
