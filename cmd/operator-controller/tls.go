package main

import (
	"errors"
	"fmt"

	"github.com/spf13/pflag"

	"github.com/clusterextensions/operator-controller/internal/tlsprofile"
)

// tlsFlags are the flags of the fields of a profile.
var tlsFlags = map[tlsprofile.Field]string{
	tlsprofile.FieldProfile:    "tls-profile",
	tlsprofile.FieldMinVersion: "tls-custom-version",
	tlsprofile.FieldCiphers:    "tls-custom-ciphers",
	tlsprofile.FieldCurves:     "tls-custom-curves",
}

// defaultTLS is that of the reference implementation.
func defaultTLS() tlsprofile.Config {
	return tlsprofile.Config{Profile: tlsprofile.Intermediate, MinVersion: "TLSv1.2"}
}

func (o *options) bindTLS(flags *pflag.FlagSet) {
	bound := &o.tlsConfig
	flags.StringVar(&bound.Profile, tlsFlags[tlsprofile.FieldProfile], bound.Profile,
		"How the servers speak TLS: old, intermediate or modern, as Mozilla defines them, or custom.")
	flags.StringVar(&bound.MinVersion, tlsFlags[tlsprofile.FieldMinVersion], bound.MinVersion,
		"Least version of TLS with --tls-profile=custom: TLSv1.0, TLSv1.1, TLSv1.2 or TLSv1.3.")
	flags.StringSliceVar(&bound.Ciphers, tlsFlags[tlsprofile.FieldCiphers], bound.Ciphers,
		"Cipher suites with --tls-profile=custom, by the names of IANA; by default those of Go. Those of TLS 1.3 are always accepted.")
	flags.StringSliceVar(&bound.Curves, tlsFlags[tlsprofile.FieldCurves], bound.Curves,
		"Curves with --tls-profile=custom, such as X25519MLKEM768,X25519,prime256v1; by default those of Go.")
}

// completeTLS reads the profile. Its error names the flag that it is about.
func (o *options) completeTLS() error {
	profile, err := tlsprofile.New(o.tlsConfig)
	if unknown, ok := errors.AsType[*tlsprofile.UnknownError](err); ok {
		return fmt.Errorf("--%s: %w", tlsFlags[unknown.Field], err)
	}
	o.tls = profile
	return err
}

// hasUnusedTLS says that custom values were given to no avail.
func (o *options) hasUnusedTLS() bool {
	given, least := o.tlsConfig, defaultTLS().MinVersion
	return given.Profile != tlsprofile.Custom &&
		(len(given.Ciphers) > 0 || len(given.Curves) > 0 || given.MinVersion != least)
}
