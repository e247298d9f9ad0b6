package main

import (
	"strings"
	"testing"
)

// The catalogs of a cluster are read by their summary, or as a whole where a server has none.
func TestCatalogsOfACluster(t *testing.T) {
	t.Parallel()
	for name, more := range map[string]map[string]string{
		"whole":   {"/catalogs/c/api/v1/all": sampleContent + `{"schema":"olm.package","name":"p","defaultChannel":"stable"}`},
		"summary": {"/catalogs/c/api/v1/summary": `{"name":"p","channel":"stable","version":"1.0.0"}`, "/catalogs/c/api/v1/all": "none"},
	} {
		stdout, _, err := invoke(t, "catalog", "search", "P", "--kubeconfig", fewRights(t, more))
		if err != nil || !strings.Contains(stdout, "p        c        stable   1.0.0") {
			t.Errorf("%s: %v\n%s", name, err, stdout)
		}
	}
}

// Vector L6: who may not reach the catalogs is told which right is missing.
func TestL6TheMissingRightIsNamed(t *testing.T) {
	t.Parallel()
	catalogs := `{"apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterCatalogList", "metadata": {}, "items": [
		{"apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterCatalog", "metadata": {"name": "c"}, "status": {
			"conditions": [{"type": "Serving", "status": "True", "reason": "Available", "message": ""}],
			"urls": {"base": "https://catalogs.olm.svc/catalogs/c"}}}]}`
	more := map[string]string{"/apis/olm.operatorframework.io/v1/clustercatalogs": catalogs}
	_, _, err := invoke(t, "catalog", "list", "--kubeconfig", fewRights(t, more))
	if text := errorText(err); !strings.Contains(text, `you need the right to get services/proxy "https:catalogs:443" in namespace "olm"`) {
		t.Errorf("got error %s", text)
	}
}

// A search that finds nothing says so, and is no error.
func TestNothingIsFound(t *testing.T) {
	t.Parallel()
	stdout, stderr, err := invoke(t, "catalog", "search", "nowhere", "--catalog", writeFile(t, sampleContent))
	if err != nil || stdout != "" || stderr != "there are no such packages\n" {
		t.Errorf("%v\n%s%s", err, stdout, stderr)
	}
}

// An authority for servers says nothing of the catalogs of a cluster, which come through its API
// server.
func TestAuthoritiesAreForCatalogsThatAreNamed(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"list"}, {"search", "p"}, {"show", "p"}, {"versions", "p"}} {
		args = append([]string{"catalog"}, append(args, "--certificate-authority", "ca.pem", "--kubeconfig", fewRights(t, nil))...)
		_, _, err := invoke(t, args...)
		if text := errorText(err); !strings.Contains(text, "--certificate-authority is for catalogs that --catalog names") {
			t.Errorf("%v: got error %s", args, text)
		}
	}
}
