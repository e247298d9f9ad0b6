package install

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/clusterextensions/operator-controller/internal/bundle"
	"github.com/clusterextensions/operator-controller/internal/cli"
	"github.com/clusterextensions/operator-controller/internal/controller"
	"github.com/clusterextensions/operator-controller/internal/inspect"
	"github.com/clusterextensions/operator-controller/internal/resolve"
)

func TestExtension(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		wish   wish
		config string
		asList bool
		want   string // of the spec, in YAML
		err    string
	}{
		"the package alone": {wish: wish{pkg: "p"}, want: `{namespace: p, serviceAccount: {name: p-installer},
			source: {sourceType: Catalog, catalog: {packageName: p}}}`},
		"all there is to say": {
			wish:   wish{pkg: "p", namespace: "ns", versions: "1.x", channels: []string{"a", "b"}, catalog: "c", watchNamespaces: []string{"team"}},
			config: "deploymentConfig: {env: []}",
			want: `{namespace: ns, serviceAccount: {name: p-installer}, config: {configType: Inline, inline: {watchNamespace: team, deploymentConfig: {env: []}}},
				source: {sourceType: Catalog, catalog: {packageName: p, version: 1.x, channels: [a, b],
				selector: {matchLabels: {olm.operatorframework.io/metadata.name: c}}}}}`,
		},
		"an empty configuration":        {wish: wish{pkg: "p"}, config: "null", want: `{namespace: p, serviceAccount: {name: p-installer}, source: {sourceType: Catalog, catalog: {packageName: p}}}`},
		"one with a namespace to watch": {wish: wish{pkg: "p", watchNamespaces: []string{"a"}}, config: "null", want: `{namespace: p, serviceAccount: {name: p-installer}, config: {configType: Inline, inline: {watchNamespace: a}}, source: {sourceType: Catalog, catalog: {packageName: p}}}`},
		"one with several":              {wish: wish{pkg: "p", watchNamespaces: []string{"b", "a", "b"}}, want: `{namespace: p, serviceAccount: {name: p-installer}, config: {configType: Inline, inline: {watchNamespaces: [a, b]}}, source: {sourceType: Catalog, catalog: {packageName: p}}}`},
		"a list of one":                 {wish: wish{pkg: "p", watchNamespaces: []string{"a"}}, asList: true, want: `{namespace: p, serviceAccount: {name: p-installer}, config: {configType: Inline, inline: {watchNamespaces: [a]}}, source: {sourceType: Catalog, catalog: {packageName: p}}}`},
		"several, watched twice":        {wish: wish{pkg: "p", watchNamespaces: []string{"a"}}, config: "watchNamespaces: [b]", err: "leave out --watch-namespace"},
		"watched twice":                 {wish: wish{pkg: "p", watchNamespaces: []string{"a"}}, config: "watchNamespace: b", err: "leave out --watch-namespace"},
		"no range":                      {wish: wish{pkg: "p", versions: "newest"}, err: "the version: "},
		"no name":                       {wish: wish{pkg: "P_"}, err: `"P_" cannot be the name of a ClusterExtension`},
		"a package with dots":           {wish: wish{pkg: "a.b"}, err: "give another one with --namespace"},
		"and a namespace":               {wish: wish{pkg: "a.b", namespace: "ab"}, want: `{namespace: ab, serviceAccount: {name: a.b-installer}, source: {sourceType: Catalog, catalog: {packageName: a.b}}}`},
		"a name that is too long":       {wish: wish{pkg: strings.Repeat("a", 250), namespace: "ab"}, err: "cannot be the name of a ServiceAccount"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ext, err := test.wish.extension([]byte(test.config), test.asList)
			if test.err != "" {
				if err == nil || !strings.Contains(err.Error(), test.err) {
					t.Errorf("got error %v, want %s", err, test.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var got, want any
			text, err := yaml.Marshal(ext.Spec)
			if err == nil {
				err = yaml.Unmarshal(text, &got)
			}
			if err == nil {
				err = yaml.Unmarshal([]byte(strings.ReplaceAll(test.want, "\t", "")), &want)
			}
			if diff := cmp.Diff(want, got); err != nil || diff != "" || ext.Name != test.wish.pkg {
				t.Errorf("%v, name %q (-want +got)\n%s", err, ext.Name, diff)
			}
		})
	}
}

// TestChoiceWarns checks the warnings about a chart whose templates call lookup, and
// the warnings of the plan.
func TestChoiceWarns(t *testing.T) {
	t.Parallel()
	const chosen = `"web.v1.0.0" version "1.0.0" of image registry.test/web` + "\n"
	for name, test := range map[string]struct {
		plan controller.Plan
		want string
	}{
		"they do":      {plan: controller.Plan{DependsOnCluster: true}, want: chosen + cli.UnknownForLookup + "\n"},
		"they may not": {plan: controller.Plan{LooksInVain: true}, want: chosen + bundle.LookupsRefusedText + "\n"},
		"they do not":  {want: chosen},
		"F70: it uses an OperatorCondition": {
			plan: controller.Plan{Warnings: []string{bundle.OperatorConditionAdvice}}, want: chosen + "warning: " + bundle.OperatorConditionAdvice + "\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test.plan.Resolution = &resolve.Resolution{Identity: bundle.Identity{Package: "web", Name: "web.v1.0.0", Version: "1.0.0"}, Image: "registry.test/web"}
			var told strings.Builder
			printChoice(&told, inspect.Plan{Plan: test.plan})
			if diff := cmp.Diff(test.want, told.String()); diff != "" {
				t.Errorf("told (-want +got):\n%s", diff)
			}
		})
	}
}
