package main

import (
	"strings"
	"testing"
)

// Nothing is run where it is not known what is installed. What is run, and how, a test of test/e2e has.
func TestBundleTestWithoutTests(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		replies map[string]string
		args    []string
		err     string
	}{
		"nothing is installed": {nil, []string{"x"}, `nothing is installed of ClusterExtension "x"`},
		"there is no such extension": {
			nil,
			[]string{"clusterextension/y"},
			`reading ClusterExtension "y": no /apis/olm.operatorframework.io/v1/clusterextensions/y for you`,
		},
		"records that may not be read": {installedExtension("", "", ""), []string{"clusterextension", "x"}, "which tests there are, which the release records say: "},
		"records that are elsewhere": {
			with(installedExtension("", "", ""), recordsPath("elsewhere"), noSecrets),
			[]string{"x", "--system-namespace", "elsewhere"},
			`--system-namespace has to be that of the controller`,
		},
		"an extension that goes": {
			installedExtension(`, "deletionTimestamp": "2026-01-02T03:04:05Z", "finalizers": ["f"]`, "", ""),
			[]string{"x"},
			`ClusterExtension "x" is being deleted since 2026-01-02T03:04:05Z`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stdout, _, err := invoke(t, append([]string{"bundle", "test", "--kubeconfig", fewRights(t, test.replies)}, test.args...)...)
			if !strings.Contains(errorText(err), test.err) || stdout != "" {
				t.Errorf("err = %v, want %q; got %s", err, test.err, stdout)
			}
		})
	}
}
