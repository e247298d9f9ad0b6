package bundle_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterextensions/operator-controller/internal/bundle"
	"github.com/clusterextensions/operator-controller/internal/testkit"
	"github.com/clusterextensions/operator-controller/internal/testkit/rendering"
)

// bundleSupporting has nothing but install modes, by their initials.
func bundleSupporting(modes string) *bundle.Bundle {
	initials := map[rune]operatorsv1alpha1.InstallModeType{
		'A': operatorsv1alpha1.InstallModeTypeAllNamespaces,
		'O': operatorsv1alpha1.InstallModeTypeOwnNamespace,
		'S': operatorsv1alpha1.InstallModeTypeSingleNamespace,
		'M': operatorsv1alpha1.InstallModeTypeMultiNamespace,
	}
	b := &bundle.Bundle{Package: "gardener"}
	for _, initial := range modes {
		b.CSV.Spec.InstallModes = append(b.CSV.Spec.InstallModes,
			operatorsv1alpha1.InstallMode{Type: initials[initial], Supported: true})
	}
	b.CSV.Spec.InstallStrategy.StrategySpec.DeploymentSpecs = []operatorsv1alpha1.StrategyDeploymentSpec{{Name: "gardener"}}
	return b
}

// TestWatchNamespace is the table of what a bundle can watch: install modes by
// their initials, and for each way to configure them the namespaces that the
// operator is told, "all" for every one, or the error.
func TestWatchNamespace(t *testing.T) {
	t.Parallel()
	const (
		all      = "all"
		own      = "operators"
		other    = "meadow"
		unknown  = `unknown field "watchNamespace"`
		missing  = `required field "watchNamespace" is missing`
		mustBe   = `invalid value "meadow": must be "operators"`
		mustNot  = `invalid value "operators": must be different from "operators"`
		tooShort = `field "watchNamespace" must have minimum length of 1`
	)
	inlines := []string{"", "{}", "watchNamespace: null", "watchNamespace: operators", "watchNamespace: meadow", `watchNamespace: ""`}
	tests := map[string][]string{
		"A":    {all, all, unknown, unknown, unknown, unknown},
		"AM":   {all, all, unknown, unknown, unknown, unknown},
		"O":    {own, own, own, own, mustBe, tooShort},
		"OM":   {own, own, own, own, mustBe, tooShort},
		"S":    {missing, missing, missing, mustNot, other, tooShort},
		"OS":   {missing, missing, missing, own, other, tooShort},
		"AO":   {all, all, all, own, mustBe, tooShort},
		"AS":   {all, all, all, mustNot, other, tooShort},
		"AOS":  {all, all, all, own, other, tooShort},
		"AOSM": {all, all, all, own, other, tooShort},
	}
	for modes, wants := range tests {
		for i, inline := range inlines {
			t.Run(modes+"/"+inline, func(t *testing.T) {
				t.Parallel()
				got := watched(t, bundleSupporting(modes), inline)
				if want := wants[i]; got != want && !strings.Contains(got, want) {
					t.Errorf("got %q, want %q", got, want)
				}
			})
		}
	}
}

func watched(t *testing.T, b *bundle.Bundle, inline string) string {
	t.Helper()
	config, err := bundle.ParseConfig(b, testNamespace, []byte(inline))
	if _, ok := errors.AsType[*bundle.ConfigError](err); ok {
		return err.Error()
	}
	if err != nil {
		t.Fatal(err)
	}
	objects, err := rendering.Objects(bundle.Render(b, bundle.Options{InstallNamespace: testNamespace, Config: config}))
	if err != nil {
		t.Fatal(err)
	}
	spec := objects[0].Object["spec"].(map[string]any)
	template := spec["template"].(map[string]any)
	annotations := template["metadata"].(map[string]any)["annotations"].(map[string]any)
	if namespaces := annotations["olm.targetNamespaces"].(string); namespaces != "" {
		return namespaces
	}
	return "all"
}

// TestWatchNamespaces is the same for lists of namespaces. N1, N4, N5 and N6 are vectors of the
// specification.
func TestWatchNamespaces(t *testing.T) {
	t.Parallel()
	const (
		list    = "watchNamespaces: "
		unknown = `unknown field "watchNamespaces": the bundle supports no install mode but AllNamespaces`
		needs   = `field "watchNamespaces" has 2 namespaces, which takes the install mode MultiNamespace: the bundle supports `
		mustBe  = `invalid format for field "watchNamespaces": 'meadow' is not valid ownNamespaceInstallMode: invalid value "meadow": must be "operators"`
		mustNot = `invalid format for field "watchNamespaces": 'operators' is not valid singleNamespaceInstallMode: invalid value "operators": must be different from "operators"`
		twice   = `fields "watchNamespace" and "watchNamespaces" exclude each other`
	)
	named := func(count int) string {
		names := make([]string, count)
		for i := range names {
			names[i] = fmt.Sprintf("n-%03d", i)
		}
		return strings.Join(names, ",")
	}
	tests := map[string]struct {
		modes, inline string
		want          string
	}{
		"N1: sorted":                            {"M", list + "[orchard, meadow]", "meadow,orchard"},
		"N1: whatever else there is":            {"AOSM", list + "[orchard, meadow]", "meadow,orchard"},
		"N4: own and single":                    {"OS", list + "[a, b]", needs + "[SingleNamespace OwnNamespace] install modes"},
		"N4: own":                               {"O", list + "[a, b]", needs + "[OwnNamespace] install modes"},
		"N4: with all":                          {"AS", list + "[a, b]", needs + "[AllNamespaces SingleNamespace] install modes"},
		"N4: all alone":                         {"A", list + "[a, b]", unknown},
		"N5: its own among them":                {"M", list + "[operators, meadow]", "meadow,operators"},
		"N5: although single is supported":      {"SM", list + "[operators, meadow]", "meadow,operators"},
		"N6: as many as there may be":           {"M", list + "[" + named(100) + "]", named(100)},
		"N6: too many":                          {"M", list + "[" + named(101) + "]", `field "watchNamespaces" must have at most 100 items (len=101)`},
		"N6: too many for any":                  {"O", list + "[" + named(101) + "]", `field "watchNamespaces" must have at most 100 items (len=101)`},
		"what is left of several":               {"M", list + "[meadow]", "meadow"},
		"its own alone, left of several":        {"SM", list + "[operators]", "operators"},
		"one, by the rules of own":              {"O", list + "[operators]", "operators"},
		"one, against the rules of own":         {"AO", list + "[meadow]", mustBe},
		"one, by the rules of single":           {"S", list + "[meadow]", "meadow"},
		"one, against the rules of single":      {"S", list + "[operators]", mustNot},
		"one, where there is nothing but all":   {"A", list + "[meadow]", unknown},
		"an empty list would mean all":          {"AM", list + "[]", `field "watchNamespaces" must have at least 1 item (len=0)`},
		"an empty list where it does not":       {"S", list + "[]", `field "watchNamespaces" must have at least 1 item (len=0)`},
		"twice the same":                        {"M", list + "[a, b, a]", `field "watchNamespaces[2]" must differ from "watchNamespaces[0]"`},
		"no name":                               {"M", list + `["", b]`, "multiple errors found:\n  - field \"watchNamespaces[0]\" must have minimum length of 1 (len=0)"},
		"not a name":                            {"M", list + "[a, B]", `field "watchNamespaces[1]" must match pattern`},
		"a long name":                           {"M", list + "[" + strings.Repeat("a", 64) + "]", `field "watchNamespaces[0]" must have maximum length of 63 (len=64)`},
		"numbers":                               {"M", list + "[7]", `invalid type for field "watchNamespaces[0]": got number, want string`},
		"no list":                               {"M", list + "meadow", `invalid type for field "watchNamespaces": got string, want array`},
		"null is not set":                       {"AM", list + "null", "all"},
		"null is not set, and needed":           {"M", list + "null", `required field "watchNamespaces" is missing: the bundle supports [MultiNamespace] install modes`},
		"nothing, where it is needed":           {"M", "", `required field "watchNamespaces" is missing: the bundle supports [MultiNamespace] install modes`},
		"nothing, where either does":            {"OSM", "", `required field "watchNamespace" is missing: the bundle supports [SingleNamespace OwnNamespace MultiNamespace] install modes; "watchNamespaces" can name several`},
		"nothing, where its own is the default": {"OM", "", "operators"},
		"nothing, where all are":                {"AM", "", "all"},
		"both":                                  {"AOSM", list + "[a, b]\nwatchNamespace: a", twice},
		"both, and one is null":                 {"AOSM", list + "[a, b]\nwatchNamespace: null", "a,b"},
		"one by the other key":                  {"AM", "watchNamespace: a", `unknown field "watchNamespace": the bundle supports [AllNamespaces MultiNamespace] install modes; use "watchNamespaces"`},
		"a list by the key for one":             {"OSM", "watchNamespace: [a, b]", `invalid type for field "watchNamespace": got array, want string`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := watched(t, bundleSupporting(tc.modes), tc.inline); got != tc.want && !strings.HasPrefix(got, "invalid configuration: "+tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// TestHugeListOfNamespaces: what is wrong with each of very many names is told in part, and soon.
func TestHugeListOfNamespaces(t *testing.T) {
	t.Parallel()
	testkit.WithoutRace(t)
	inline := "watchNamespaces: [" + strings.Repeat(`"?",`, 100_000) + "]"
	begin := time.Now()
	_, err := bundle.ParseConfig(bundleSupporting("M"), testNamespace, []byte(inline))
	if _, ok := errors.AsType[*bundle.ConfigError](err); !ok || time.Since(begin) > 10*time.Second {
		t.Errorf("after %s: %.100v", time.Since(begin), err)
	}
}

// TestUnwatchable: no configuration helps a bundle that has no mode.
func TestUnwatchable(t *testing.T) {
	t.Parallel()
	b := bundleSupporting("")
	var unsupported *bundle.UnsupportedError
	if err := b.Validate(); !errors.As(err, &unsupported) {
		t.Errorf("Validate() error = %v, want an UnsupportedError", err)
	}
	if _, err := bundle.ParseConfig(b, testNamespace, []byte("watchNamespace: meadow")); !errors.As(err, &unsupported) {
		t.Errorf("ParseConfig() error = %v, want an UnsupportedError", err)
	}
}

// TestRenderChecksConfig: a Config that did not come from ParseConfig is held
// against the bundle all the same.
func TestRenderChecksConfig(t *testing.T) {
	t.Parallel()
	opts := bundle.Options{InstallNamespace: testNamespace, Config: bundle.Config{WatchNamespaces: []string{"meadow"}}}
	for _, modes := range []string{"A", "O", "AO"} {
		if _, err := bundle.Render(bundleSupporting(modes), opts); !errors.As(err, new(*bundle.ConfigError)) {
			t.Errorf("modes %q: error = %v, want a ConfigError", modes, err)
		}
	}
	several := bundle.Options{InstallNamespace: testNamespace, Config: bundle.Config{WatchNamespaces: []string{"b", "a"}}}
	if _, err := bundle.Render(bundleSupporting("OS"), several); !errors.As(err, new(*bundle.ConfigError)) {
		t.Errorf("several namespaces: error = %v, want a ConfigError", err)
	}
	if _, err := bundle.Render(bundleSupporting("S"), bundle.Options{Config: opts.Config}); err == nil {
		t.Error("rendered without an install namespace")
	}
}

func TestConfigProblems(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		reason string
		inline string
		want   []string
	}{
		"boolean":       {reason: "a configuration is a map", inline: "true", want: []string{"invalid type: got boolean, want object"}},
		"list":          {reason: "a configuration is a map", inline: "[]", want: []string{"invalid type: got array, want object"}},
		"truncated":     {reason: "the cause without the names of parsers", inline: `{"a`, want: []string{"found unexpected end of stream"}},
		"two documents": {reason: "one would be ignored", inline: "{}\n---\n{}", want: []string{"more than one document"}},
		"unknown": {reason: "all of them, sorted", inline: "{b: 1, a: 1}", want: []string{
			`unknown field "a", want one of aggregatedClusterRoles, deploymentConfig, operatorConditions, watchNamespace, watchNamespaces`,
			`unknown field "b", want one of aggregatedClusterRoles, deploymentConfig, operatorConditions, watchNamespace, watchNamespaces`,
		}},
		"long":   {reason: "a namespace is a DNS label", inline: "watchNamespace: " + strings.Repeat("a", 64), want: []string{`field "watchNamespace" must have maximum length of 63 (len=64)`}},
		"number": {reason: "no guess about its text", inline: "watchNamespace: 7", want: []string{`invalid type for field "watchNamespace": got number, want string`}},
		"selector": {reason: "classic OLM had it, but not for this", inline: "deploymentConfig: {selector: {}}", want: []string{
			`unknown field "selector", want one of affinity, annotations, env, envFrom, nodeSelector, resources, tolerations, volumeMounts, volumes`,
		}},
		"wrong type":     {reason: "with its path", inline: "deploymentConfig: {env: {}}", want: []string{`invalid type for field "deploymentConfig.env": got object, want array`}},
		"inner null":     {reason: "not set and null are told apart inside", inline: "deploymentConfig: {resources: null}", want: []string{`invalid type for field "deploymentConfig.resources": got null, want object`}},
		"inner required": {reason: "with its path", inline: "deploymentConfig: {volumeMounts: [{name: a}]}", want: []string{`required field "deploymentConfig.volumeMounts[0].mountPath" is missing`}},
		"inner unknown": {reason: "a typo would wipe the affinity", inline: "deploymentConfig: {affinity: {nodeAfinity: {}}}", want: []string{
			`unknown field "deploymentConfig.affinity.nodeAfinity", want one of nodeAffinity, podAffinity, podAntiAffinity`,
		}},
		"null inside a list": {reason: "no guess", inline: "deploymentConfig: {env: [null]}", want: []string{`invalid type for field "deploymentConfig.env[0]": got null, want object`}},
		"value of few": {
			reason: "what would be possible is said",
			inline: "deploymentConfig: {tolerations: [{operator: Equals, effect: NoSchedule}, {effect: ''}]}",
			want:   []string{`invalid value for field "deploymentConfig.tolerations[0].operator": got "Equals", want one of "Exists", "Equal", "Lt", "Gt"`},
		},
		"conditions":  {reason: "on or off", inline: "operatorConditions: always", want: []string{`invalid type for field "operatorConditions": got string, want boolean`}},
		"aggregation": {reason: "on or off", inline: "aggregatedClusterRoles: view", want: []string{`invalid type for field "aggregatedClusterRoles": got string, want boolean`}},
		"annotation key": {
			reason: "no cluster takes it",
			inline: "deploymentConfig: {annotations: {a/b/c: d}}",
			want:   []string{`invalid key "a/b/c" in field "deploymentConfig.annotations": a valid label key must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')`},
		},
		"node label": {
			reason: "no node can have it",
			inline: "deploymentConfig: {nodeSelector: {a: b c}}",
			want:   []string{`invalid value for field "deploymentConfig.nodeSelector": Invalid value: "b c": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')`},
		},
		"volume twice": {
			reason: "no pod can have it",
			inline: "deploymentConfig: {volumes: [{name: a}, {name: b}, {name: a}]}",
			want:   []string{`field "deploymentConfig.volumes[2].name" must differ from "deploymentConfig.volumes[0].name", both are "a"`},
		},
		"range": {
			reason: "the field has 32 bits",
			inline: "deploymentConfig: {affinity: {podAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 4294967296, podAffinityTerm: {topologyKey: a}}]}}}",
			want:   []string{`field "deploymentConfig.affinity.podAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight" must be at most 2147483647`},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := bundle.ParseConfig(bundleSupporting("AOS"), testNamespace, []byte(tc.inline))
			var invalid *bundle.ConfigError
			if !errors.As(err, &invalid) {
				t.Fatalf("error = %v, want a ConfigError (%s)", err, tc.reason)
			}
			if diff := cmp.Diff(tc.want, invalid.Problems); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// TestUnsetDeploymentConfig: null is not set, an empty one changes nothing.
func TestUnsetDeploymentConfig(t *testing.T) {
	t.Parallel()
	b := bundleSupporting("A")
	digests := map[string]bool{}
	for _, inline := range []string{"", "deploymentConfig: null", "deploymentConfig: {}"} {
		config, err := bundle.ParseConfig(b, testNamespace, []byte(inline))
		if err != nil {
			t.Fatal(err)
		}
		objects, err := rendering.Objects(bundle.Render(b, bundle.Options{InstallNamespace: testNamespace, Config: config}))
		if err != nil {
			t.Fatal(err)
		}
		digests[bundle.Digest(objects)] = true
	}
	if len(digests) != 1 {
		t.Errorf("got %d different results, want the same for all", len(digests))
	}
}

func TestDigestIgnoresOrder(t *testing.T) {
	t.Parallel()
	objects, err := rendering.Objects(bundle.Render(bundleSupporting("A"), bundle.Options{InstallNamespace: testNamespace}))
	if err != nil {
		t.Fatal(err)
	}
	other := objects[0].DeepCopy()
	other.SetName("other")
	forth, back := bundle.Digest(append(objects, other)), bundle.Digest(append([]*unstructured.Unstructured{other}, objects...))
	if forth != back {
		t.Errorf("digests differ by order: %s and %s", forth, back)
	}
	if forth == bundle.Digest(objects) {
		t.Error("the digest does not see another object")
	}
}
