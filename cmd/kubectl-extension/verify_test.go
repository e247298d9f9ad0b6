package main

import (
	"encoding/base64"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/opencontainers/go-digest"

	"github.com/clusterextensions/operator-controller/internal/testkit"
	"github.com/clusterextensions/operator-controller/internal/testkit/signing"
)

const (
	pathPolicies = "/apis/policy.clusterextensions.dev/v1alpha1/imagepolicies"
	pathSecret   = "/api/v1/namespaces/olmv1-system/secrets/acme-key"
	pathCatalog  = "/apis/olm.operatorframework.io/v1/clustercatalogs/c"

	policyList = `{"apiVersion": "policy.clusterextensions.dev/v1alpha1", "kind": "ImagePolicyList", "metadata": {}, "items": [
		{"metadata": {"name": "acme"}, "spec": {"match": [{"prefix": "registry.test"}], "authorities": [{"name": "release", "key": {"secretRef": {"name": "acme-key"}}}]}},
		{"metadata": {"name": "other"}, "spec": {"match": [{"prefix": "example.com"}], "authorities": [{"name": "release", "key": {"secretRef": {"name": "not-to-be-read"}}}]}}]}`
)

// TestVerifyOfACluster judges the images of a catalog and of an extension by the policies of a
// cluster, of which only those are read that matter.
//
//nolint:paralleltest // mirrors are found by the environment
func TestVerifyOfACluster(t *testing.T) {
	registry, err := testkit.StartRegistry()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = registry.Close() })
	conf := filepath.Join(t.TempDir(), "registries.conf")
	if err := registry.WriteRegistriesConf(conf, "registry.test"); err != nil {
		t.Fatal(err)
	}
	t.Setenv("CONTAINERS_REGISTRIES_CONF", conf)
	anything := writeFile(t, `{"default":[{"type":"insecureAcceptAnything"}]}`)
	signer, key, err := signing.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	push := func(target string, signed bool) string {
		t.Helper()
		pushed, err := registry.Push(t.Context(), target, fstest.MapFS{"manifests/x": {Data: []byte(target)}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if !signed {
			return pushed
		}
		signature, err := signer.Old(digest.Digest(pushed))
		if err != nil {
			t.Fatal(err)
		}
		repository, _, _ := strings.Cut(target, ":")
		if err := signing.Attach(t.Context(), registry, repository, pushed, signature); err != nil {
			t.Fatal(err)
		}
		return pushed
	}
	served, bundled := push("catalog:v1", true), push("package:v1", true)
	push("catalog:v2", false)
	push("package:v2", false)
	secret := fmt.Sprintf(`{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "acme-key"}, "data": {"cosign.pub": %q}}`, base64.StdEncoding.EncodeToString(key))
	catalog := func(tag string) string {
		return fmt.Sprintf(`{"apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterCatalog", "metadata": {"name": "c"},
			"spec": {"source": {"type": "Image", "image": {"ref": "registry.test/catalog:%s"}}},
			"status": {"resolvedSource": {"type": "Image", "image": {"ref": "registry.test/catalog@%s"}}}}`, tag, served)
	}
	content := func(tag string) string {
		return strings.ReplaceAll(sampleContent, "r/p:v1", "registry.test/package:"+tag)
	}
	file := writeFile(t, "apiVersion: policy.clusterextensions.dev/v1alpha1\nkind: ImagePolicy\nmetadata: {name: mine}\n"+
		"spec: {match: [{prefix: registry.test/catalog}], mode: Warn, authorities: [{name: k, key: {secretRef: {name: none}}}]}\n")
	for name, tc := range map[string]struct {
		args []string
		has  map[string]string
		want []string // in what is printed
		err  string
	}{
		"image": {
			[]string{"registry.test/package:v1"},
			map[string]string{pathPolicies: policyList, pathSecret: secret},
			[]string{"Digest:       " + bundled, "Policy:       acme, Enforce", "Verdict:      accepted"},
			"",
		},
		"catalog that is up to date": {
			[]string{"clustercatalog/c"},
			map[string]string{pathPolicies: policyList, pathSecret: secret, pathCatalog: catalog("v1")},
			[]string{"What:         served, named by the spec", "Verdict:      accepted"},
			"",
		},
		"catalog with a newer image": {
			[]string{"clustercatalog", "c"},
			map[string]string{pathPolicies: policyList, pathSecret: secret, pathCatalog: catalog("v2")},
			[]string{"What:         served\n", "Verdict:      accepted", "What:         named by the spec", `Verdict:      refused: ImagePolicy "acme": it has no signature`},
			"1 image refused",
		},
		"extension": {
			[]string{"clusterextension/x"},
			map[string]string{pathPolicies: policyList, pathSecret: secret, "/catalogs/c/api/v1/all": content("v2")},
			[]string{"Image:        registry.test/package:v2", "What:         installed next", "Verdict:      refused"},
			"1 image refused",
		},
		"Secret that may not be read": {
			[]string{"registry.test/package:v1"},
			map[string]string{pathPolicies: policyList},
			nil,
			`reading the Secret olmv1-system/acme-key, which ImagePolicy "acme" names: no ` + pathSecret + " for you\nYou may not read what is trusted. Ask for the right to get that Secret, or give the policies with their Secrets by --policy FILE",
		},
		"policies that may not be read":    {[]string{"registry.test/package:v1"}, nil, nil, "listing ImagePolicies: no " + pathPolicies + " for you"},
		"policies that do not matter":      {[]string{"registry.test/package:v1"}, map[string]string{pathPolicies: strings.Replace(policyList, "registry.test", "quay.io", 1)}, []string{"none is about it"}, ""},
		"policies of a file for a catalog": {[]string{"clustercatalog/c", "--policy", file}, map[string]string{pathCatalog: catalog("v2")}, []string{"mine, Warn", `authority "k": no: no file has the Secret "none"`, "Verdict:      warned"}, ""},
		"no such catalog":                  {[]string{"clustercatalog/c"}, nil, nil, `reading ClusterCatalog "c": no ` + pathCatalog + " for you"},
	} {
		t.Run(name, func(t *testing.T) {
			args := append([]string{"verify"}, tc.args...)
			stdout, _, err := invoke(t, append(args, "--signature-policy", anything, "--kubeconfig", fewRights(t, tc.has))...)
			if got := errorText(err); got != tc.err {
				t.Errorf("error %q, want %q", got, tc.err)
			}
			for _, want := range tc.want {
				if !strings.Contains(stdout, want) {
					t.Errorf("%q is missing in\n%s", want, stdout)
				}
			}
		})
	}
}
