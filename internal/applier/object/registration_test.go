package object

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

func TestServersOf(t *testing.T) {
	t.Parallel()
	const (
		api = `
kind: APIService
spec: {service: {namespace: operators, name: gardener-service}}
`
		webhooks = `
kind: MutatingWebhookConfiguration
webhooks:
- {clientConfig: {url: "https://elsewhere.test"}}
- {clientConfig: {service: {namespace: operators, name: gardener-service}}}
- {clientConfig: {service: {namespace: operators, name: gardener-service, path: /other}}}
`
		service = `
kind: Service
metadata: {namespace: operators, name: gardener-service}
spec: {selector: {app: gardener}}
`
		deployment = `
kind: Deployment
metadata: {namespace: operators, name: gardener}
spec: {template: {metadata: {labels: {app: gardener, tier: api}}}}
`
		twin = `
kind: Deployment
metadata: {namespace: operators, name: another}
spec: {template: {metadata: {labels: {app: gardener}}}}
`
	)
	tests := map[string]struct {
		api     string
		objects []string
		want    []string
	}{
		"selected":                         {api: api, objects: []string{service, deployment}, want: []string{"gardener"}},
		"two":                              {api: api, objects: []string{deployment, service, twin}, want: []string{"another", "gardener"}},
		"other pods":                       {api: api, objects: []string{service, strings.ReplaceAll(deployment, "app: gardener", "app: other")}},
		"elsewhere":                        {api: api, objects: []string{service, strings.ReplaceAll(deployment, "operators", "others")}},
		"a StatefulSet":                    {api: api, objects: []string{service, strings.ReplaceAll(deployment, "Deployment", "StatefulSet")}, want: []string{"gardener"}},
		"a CronJob":                        {api: api, objects: []string{service, strings.ReplaceAll(deployment, "Deployment", "CronJob")}},
		"Service of other":                 {api: api, objects: []string{deployment}, want: []string{"gardener-service"}},
		"no selector":                      {api: api, objects: []string{strings.ReplaceAll(service, "selector: {app: gardener}", ""), deployment}},
		"no Service":                       {api: "kind: APIService\nspec: {}\n", objects: []string{service, deployment}},
		"F23: a webhook":                   {api: webhooks, objects: []string{service, deployment}, want: []string{"gardener"}},
		"F23: a webhook that others serve": {api: webhooks, objects: []string{deployment}},
		"F21: a conversion webhook": {
			api:     "kind: CustomResourceDefinition\nspec: {conversion: {webhook: {clientConfig: {service: {namespace: operators, name: gardener-service}}}}}",
			objects: []string{service, deployment}, want: []string{"gardener"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var items []Item
			for _, text := range tt.objects {
				made := fromYAML(t, text)
				key := Key{Namespace: made.GetNamespace(), Name: made.GetName()}
				key.Kind = made.GetKind()
				if key.Kind != "Service" {
					key.Group = "apps"
				}
				items = append(items, Item{Key: key, Object: made})
			}
			var got []string
			for _, key := range ServersOf(fromYAML(t, tt.api), items) {
				got = append(got, key.Name)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestLeadsElsewhere(t *testing.T) {
	t.Parallel()
	const one = "kind: APIService\nspec: {service: {namespace: ns, name: one}}"
	tests := map[string]struct {
		live, wanted string
		want         bool
	}{
		"the same":          {live: one, wanted: one},
		"the port that is":  {live: "kind: APIService\nspec: {service: {namespace: ns, name: one, port: 443}}", wanted: one},
		"numbers of JSON":   {live: "kind: APIService\nspec: {service: {namespace: ns, name: one, port: 8443.0}}", wanted: "kind: APIService\nspec: {service: {namespace: ns, name: one, port: 8443}}"},
		"another port":      {live: one, wanted: "kind: APIService\nspec: {service: {namespace: ns, name: one, port: 8443}}", want: true},
		"another Service":   {live: one, wanted: "kind: APIService\nspec: {service: {namespace: ns, name: two}}", want: true},
		"another namespace": {live: one, wanted: "kind: APIService\nspec: {service: {namespace: other, name: one}}", want: true},
		"the first Service": {live: "kind: APIService\nspec: {group: g}", wanted: one, want: true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := LeadsElsewhere(fromYAML(t, tt.wanted), fromYAML(t, tt.live)); got != tt.want {
				t.Errorf("LeadsElsewhere() = %t", got)
			}
		})
	}
}

func fromYAML(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	made := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &made.Object); err != nil {
		t.Fatal(err)
	}
	return made
}
