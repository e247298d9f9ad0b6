package crdupgrade_test

import (
	"encoding/json"
	"slices"
	"testing"
	"unicode/utf8"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/clusterextensions/operator-controller/internal/preflight/crdupgrade"
)

func FuzzCompare(f *testing.F) {
	seed := func(old, newer string) { f.Add([]byte(old), []byte(newer)) }
	schema := func(s string) string {
		return `{"spec":{"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":` + s + `}}]}}`
	}
	seed(`{}`, `{"spec":{"versions":[{"name":"v1","storage":true},{}]},"status":{"storedVersions":["v1","v1"]}}`)
	seed(schema(`{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}`), schema(`{"additionalProperties":{"enum":["x",null]}}`))
	seed(schema(`{"anyOf":[{"oneOf":[{"not":{}}]}]}`), schema(`{"anyOf":[{"oneOf":[{"not":{"pattern":"("}}]}],"items":[{}]}`))
	seed(schema(`{"x-kubernetes-int-or-string":true,"multipleOf":0,"default":1}`), schema(`{"multipleOf":0,"allOf":[{"anyOf":[{},{}]}],"default":2}`))

	checks := crdupgrade.Checks()
	f.Fuzz(func(t *testing.T, a, b []byte) {
		var old, newer apiextensionsv1.CustomResourceDefinition
		if json.Unmarshal(a, &old) != nil || json.Unmarshal(b, &newer) != nil {
			return
		}
		found := crdupgrade.Compare(&old, &newer)
		for _, finding := range found {
			if !slices.Contains(checks, finding.Check) || finding.Advice == "" || finding.Detail == "" || !utf8.ValidString(finding.Path+finding.Detail) {
				t.Errorf("got %+v", finding)
			}
		}
		if !slices.Equal(found, crdupgrade.Compare(&old, &newer)) {
			t.Error("the findings are not the same the second time")
		}
		breaks := func(f crdupgrade.Finding) bool { return f.Kind == crdupgrade.NeedsData }
		if same := crdupgrade.Compare(&old, &old); slices.ContainsFunc(same, breaks) && len(old.Spec.Versions) <= 100 {
			t.Errorf("nothing changed, but found %q", same)
		}
		if got := len(crdupgrade.Message(found)); got > 32768 {
			t.Errorf("the message has %d bytes", got)
		}
	})
}
