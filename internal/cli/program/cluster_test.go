package program

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What names no cluster is said with the file, or with what would name one.
func TestRESTConfig(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("HOME", dir)
	good, bad, none := filepath.Join(dir, "good"), filepath.Join(dir, "bad"), filepath.Join(dir, "none")
	content := `{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c}}],
clusters: [{name: c, cluster: {server: "https://api.example"}}]}`
	for path, text := range map[string]string{good: content, bad: "# no kubeconfig\n\tat all"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, test := range map[string]struct {
		env, kubeconfig, context string

		want string // in the error
		code int
	}{
		"a flag":                       {kubeconfig: good, context: "c"},
		"the variable":                 {env: good},
		"nothing":                      {want: "there is no kubeconfig: give --kubeconfig, or set KUBECONFIG", code: Failed},
		"a variable without a file":    {env: none, want: "KUBECONFIG: Config not found: " + none, code: Failed},
		"a flag without a file":        {kubeconfig: none, want: none, code: Usage},
		"a flag with another file":     {kubeconfig: bad, want: bad, code: Usage},
		"a context that there is not":  {kubeconfig: good, context: "nope", want: `"nope"`, code: Usage},
		"a context for the variable's": {env: good, context: "nope", want: `"nope"`, code: Usage},
	} {
		t.Setenv("KUBECONFIG", test.env)
		config, err := RESTConfig(test.kubeconfig, test.context)
		if Code(err) != test.code || (err == nil && config.Host != "https://api.example") || (err != nil && !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s: got %v, %v, want %q", name, config, err, test.want)
		}
	}
}
