// Package imagetest starts a registry, and says how to pull from it in a way that does
// not depend on what this machine is configured to do.
package imagetest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/clusterextensions/operator-controller/internal/image"
	"github.com/clusterextensions/operator-controller/internal/testkit"
)

// AcceptAnything is a signature policy.
const AcceptAnything = `{"default":[{"type":"insecureAcceptAnything"}]}`

// Start starts a registry that answers for the given prefixes too, and gives the
// configuration of who pulls from it, with files of its own in place of all of this
// machine.
func Start(tb testing.TB, prefixes ...string) (*testkit.Registry, image.Config) {
	tb.Helper()
	registry, err := testkit.StartRegistry()
	if err != nil {
		tb.Fatal(err)
	}
	return registry, Configure(tb, registry, prefixes...)
}

// Configure is [Start] for a registry that runs, and closes it at the end.
func Configure(tb testing.TB, registry *testkit.Registry, prefixes ...string) image.Config {
	tb.Helper()
	tb.Cleanup(func() {
		if err := registry.Close(); err != nil {
			tb.Error(err)
		}
	})
	dir := tb.TempDir()
	config := image.Config{
		Dir:            filepath.Join(dir, "cache"),
		AuthFile:       filepath.Join(dir, "auth.json"),
		PolicyFile:     filepath.Join(dir, "policy.json"),
		RegistriesConf: filepath.Join(dir, "registries.conf"),
		RegistriesDir:  filepath.Join(dir, "registries.d"),
	}
	for path, content := range map[string]string{config.AuthFile: "{}", config.PolicyFile: AcceptAnything} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			tb.Fatal(err)
		}
	}
	if err := registry.WriteRegistriesConf(config.RegistriesConf, prefixes...); err != nil {
		tb.Fatal(err)
	}
	return config
}
