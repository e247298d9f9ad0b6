package tlsprofile_test

import (
	"crypto/tls"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/clusterextensions/operator-controller/internal/tlsprofile"
)

// applied is what a server is configured with.
type applied struct {
	Version string
	Ciphers []string
	Curves  []tls.CurveID
}

func appliedBy(profile tlsprofile.Profile) applied {
	config := &tls.Config{}
	profile.Apply(config)
	got := applied{Version: tls.VersionName(config.MinVersion), Curves: config.CurvePreferences}
	for _, id := range config.CipherSuites {
		got.Ciphers = append(got.Ciphers, tls.CipherSuiteName(id))
	}
	return got
}

func withECDHE(suffixes ...string) []string {
	var names []string
	for _, suffix := range suffixes {
		names = append(names, "TLS_ECDHE_ECDSA_WITH_"+suffix, "TLS_ECDHE_RSA_WITH_"+suffix)
	}
	return names
}

func TestProfiles(t *testing.T) {
	t.Parallel()
	curves := []tls.CurveID{tls.X25519MLKEM768, tls.X25519, tls.CurveP256, tls.CurveP384}
	intermediate := withECDHE("AES_128_GCM_SHA256", "AES_256_GCM_SHA384", "CHACHA20_POLY1305_SHA256")
	tests := map[string]struct {
		config tlsprofile.Config
		want   applied
	}{
		"modern": {
			config: tlsprofile.Config{Profile: tlsprofile.Modern, MinVersion: "TLSv1.2"},
			want:   applied{Version: "TLS 1.3", Curves: curves},
		},
		"intermediate": {
			config: tlsprofile.Config{Profile: tlsprofile.Intermediate, MinVersion: "TLSv1.2"},
			want:   applied{Version: "TLS 1.2", Ciphers: intermediate, Curves: curves},
		},
		"what is custom does not matter to others": {
			config: tlsprofile.Config{
				Profile: tlsprofile.Intermediate, MinVersion: "TLSv1.0",
				Ciphers: []string{"TLS_RSA_WITH_AES_128_CBC_SHA"}, Curves: []string{"secp521r1"},
			},
			want: applied{Version: "TLS 1.2", Ciphers: intermediate, Curves: curves},
		},
		"old": {
			config: tlsprofile.Config{Profile: tlsprofile.Old, MinVersion: "TLSv1.2"},
			want: applied{
				Version: "TLS 1.0", Curves: curves,
				Ciphers: slices.Concat(intermediate, withECDHE("AES_128_CBC_SHA256", "AES_128_CBC_SHA", "AES_256_CBC_SHA"), []string{
					"TLS_RSA_WITH_AES_128_GCM_SHA256", "TLS_RSA_WITH_AES_256_GCM_SHA384", "TLS_RSA_WITH_AES_128_CBC_SHA256",
					"TLS_RSA_WITH_AES_128_CBC_SHA", "TLS_RSA_WITH_AES_256_CBC_SHA", "TLS_RSA_WITH_3DES_EDE_CBC_SHA",
				}),
			},
		},
		"custom, only a version": {
			config: tlsprofile.Config{Profile: tlsprofile.Custom, MinVersion: "TLSv1.1"},
			want:   applied{Version: "TLS 1.1"},
		},
		"custom, in full": {
			config: tlsprofile.Config{
				Profile: tlsprofile.Custom, MinVersion: "TLSv1.2",
				Ciphers: []string{"TLS_AES_128_GCM_SHA256", " TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"},
				Curves:  []string{"SecP384r1MLKEM1024", "prime256v1", "CurveP521"},
			},
			want: applied{
				Version: "TLS 1.2", Ciphers: []string{"TLS_AES_128_GCM_SHA256", "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"},
				Curves: []tls.CurveID{tls.SecP384r1MLKEM1024, tls.CurveP256, tls.CurveP521},
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			profile, err := tlsprofile.New(tc.config)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, appliedBy(profile)); diff != "" {
				t.Errorf("applied (-want +got):\n%s", diff)
			}
		})
	}
}

// A name that is not known is refused whatever the profile, together with those there are.
func TestUnknown(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		config tlsprofile.Config
		field  tlsprofile.Field
		known  string
	}{
		"a profile":                {tlsprofile.Config{Profile: "strict", MinVersion: "TLSv1.2"}, tlsprofile.FieldProfile, "intermediate"},
		"no profile":               {tlsprofile.Config{MinVersion: "TLSv1.2"}, tlsprofile.FieldProfile, "old"},
		"a version":                {tlsprofile.Config{Profile: tlsprofile.Custom, MinVersion: "SSLv3"}, tlsprofile.FieldMinVersion, "TLSv1.3"},
		"a version of another":     {tlsprofile.Config{Profile: tlsprofile.Modern, MinVersion: "1.2"}, tlsprofile.FieldMinVersion, "TLSv1.0"},
		"the second of two":        {tlsprofile.Config{Profile: tlsprofile.Custom, MinVersion: "TLSv1.2", Ciphers: []string{"TLS_AES_128_GCM_SHA256", "NULL"}}, tlsprofile.FieldCiphers, "TLS_AES_256_GCM_SHA384"},
		"a curve":                  {tlsprofile.Config{Profile: tlsprofile.Custom, MinVersion: "TLSv1.2", Curves: []string{"sect163k1"}}, tlsprofile.FieldCurves, "X25519MLKEM768"},
		"an empty name of a curve": {tlsprofile.Config{Profile: tlsprofile.Custom, MinVersion: "TLSv1.2", Curves: []string{""}}, tlsprofile.FieldCurves, "X25519"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := tlsprofile.New(tc.config)
			unknown, ok := errors.AsType[*tlsprofile.UnknownError](err)
			if !ok || unknown.Field != tc.field || !strings.Contains(err.Error(), tc.known) {
				t.Errorf("New() fails with %v, want one about field %d that has %q", err, tc.field, tc.known)
			}
		})
	}
}
