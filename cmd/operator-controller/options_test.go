package main

import (
	"maps"
	"testing"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"
)

func TestOptions(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		args []string
		err  string
		want func(*options) bool
	}{
		"defaults": {want: func(o *options) bool { return o.metricsAddress == "0" && o.systemNamespace != "" && o.workers == 8 }},
		"only a certificate": {
			args: []string{"--tls-cert=c"}, err: "--tls-cert and --tls-key must be given together",
		},
		"metrics without a certificate": {
			args: []string{"--metrics-bind-address=:7443"},
			want: func(o *options) bool { return o.metricsAddress == ":7443" },
		},
		"metrics off": {
			args: []string{"--metrics-bind-address=0"},
			want: func(o *options) bool { return o.metricsAddress == "0" },
		},
		"metrics beside catalogs": {
			args: []string{"--tls-cert=c", "--tls-key=k"},
			want: func(o *options) bool { return o.metricsAddress == "0" },
		},
		"metrics where catalogs are not": {
			args: []string{"--tls-cert=c", "--tls-key=k", "--catalog-server=false"},
			want: func(o *options) bool { return o.metricsAddress == ":8443" },
		},
		"pull secret": {
			args: []string{"--global-pull-secret=ns/name"},
			want: func(o *options) bool { return o.pullSecret.Namespace == "ns" && o.pullSecret.Name == "name" },
		},
		"pull secret without a namespace": {
			args: []string{"--global-pull-secret=name"}, err: `--global-pull-secret must be <namespace>/<name>, not "name"`,
		},
		"service account": {
			args: []string{"--service-account=ns/name"},
			want: func(o *options) bool { return o.serviceAccount.String() == "ns/name" },
		},
		"service account with more": {
			args: []string{"--service-account=ns/name/x"}, err: `--service-account must be <namespace>/<name>, not "ns/name/x"`,
		},
		"external URL": {
			args: []string{"--catalog-server-external-url=catalogd"},
			err:  `--catalog-server-external-url must be an http or https URL, not "catalogd"`,
		},
		"external URL of a server that is off": {
			args: []string{"--catalog-server=false", "--catalog-server-external-url="},
			want: func(o *options) bool { return !o.serveCatalogs },
		},
		"a folder that there is not": {
			args: []string{"--catalogd-cas-dir=/nope"}, err: "--catalogd-cas-dir: open /nope: no such file or directory",
		},
		"no folder for the cache": {
			args: []string{"--cache-path="}, err: "--cache-path must name a directory",
		},
		"a port without a colon": {
			args: []string{"--metrics-bind-address=8443"},
			err:  `--metrics-bind-address must be an address such as :8443, not "8443": address 8443: missing port in address`,
		},
		"no servers": {
			args: []string{"--metrics-bind-address=0", "--health-probe-bind-address=0", "--pprof-bind-address="},
			want: func(o *options) bool { return o.metricsAddress == "0" },
		},
		"another folder that there is not": {
			args: []string{"--pull-cas-dir=/nope"}, err: "--pull-cas-dir: open /nope: no such file or directory",
		},
		"mirrors that there are not": {
			args: []string{"--registries-conf=/nope"}, err: "--registries-conf: reading registries.conf: open /nope: no such file or directory",
		},
		"a namespace that there cannot be": {
			args: []string{"--system-namespace=A_B"}, err: `--system-namespace: no namespace can have the name "A_B": ` + validation.IsDNS1123Label("A_B")[0],
		},
		"TLS as the reference has it": {
			want: func(o *options) bool { return o.tlsConfig.Profile == "intermediate" && !o.hasUnusedTLS() },
		},
		"a TLS profile": {
			args: []string{"--tls-profile=custom", "--tls-custom-version=TLSv1.3", "--tls-custom-curves=X25519MLKEM768,X25519"},
			want: func(o *options) bool { return len(o.tlsConfig.Curves) == 2 && !o.hasUnusedTLS() },
		},
		"custom TLS without its profile": {
			args: []string{"--tls-custom-ciphers=TLS_AES_128_GCM_SHA256"},
			want: (*options).hasUnusedTLS,
		},
		"a TLS profile that there is not": {
			args: []string{"--tls-profile=strict"}, err: `--tls-profile: "strict" is not known; there are old, intermediate, modern, custom`,
		},
		"a version of TLS that there is not": {
			args: []string{"--tls-custom-version=SSLv3"}, err: `--tls-custom-version: "SSLv3" is not known; there are TLSv1.0, TLSv1.1, TLSv1.2, TLSv1.3`,
		},
		"a curve that there is not": {
			args: []string{"--tls-profile=custom", "--tls-custom-curves=X25519,mine"},
			err: `--tls-custom-curves: "mine" is not known; there are CurveP256, CurveP384, CurveP521, P-256, P-384, P-521, SecP256r1MLKEM768, SecP384r1MLKEM1024, ` +
				`X25519, X25519MLKEM768, prime256v1, secp256r1, secp384r1, secp521r1`,
		},
		"feature gates, twice": {
			args: []string{"--feature-gates=A=true, B=0", "--feature-gates=C=f"},
			want: func(o *options) bool {
				return maps.Equal(o.featureGates, map[string]bool{"A": true, "B": false, "C": false})
			},
		},
		"at once":  {args: []string{"--min-ready-seconds=0"}, want: func(o *options) bool { return o.minReadySeconds == 0 }},
		"never":    {args: []string{"--min-ready-seconds=3601"}, err: "--min-ready-seconds must be between 0 and 3600, not 3601"},
		"earlier":  {args: []string{"--min-ready-seconds=-1"}, err: "--min-ready-seconds must be between 0 and 3600, not -1"},
		"all stay": {args: []string{"--default-uninstall-policy=Orphan"}, want: func(o *options) bool { return o.uninstallPolicy == "Orphan" }},
		"some stay": {
			args: []string{"--default-uninstall-policy=Some"}, err: `--default-uninstall-policy must be one of ["Delete" "Keep" "RefuseWhileInUse" "Orphan"], not "Some"`,
		},
		"no workers": {args: []string{"--workers=0"}, err: "--workers must be at least 1, not 0"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := defaultOptions()
			flags := pflag.NewFlagSet(name, pflag.ContinueOnError)
			o.bind(flags)
			if err := flags.Parse(tc.args); err != nil {
				t.Fatal(err)
			}
			err := o.complete()
			if tc.err != "" {
				if err == nil || err.Error() != tc.err {
					t.Errorf("err = %v, want %s", err, tc.err)
				}
				return
			}
			if err != nil || !tc.want(o) {
				t.Errorf("err = %v, options = %+v", err, o)
			}
		})
	}
}

func TestFlagsAreLogged(t *testing.T) {
	t.Parallel()
	o := defaultOptions()
	o.workers, o.cachePath = 3, "/elsewhere"
	got := o.flags()
	if got["workers"] != "3" || got["cache-path"] != "/elsewhere" || got["leader-elect"] != "false" || o.workers != 3 {
		t.Errorf("flags are %v", got)
	}
}
