package requirement_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/clusterextensions/operator-controller/internal/requirement"
)

var (
	errDown = errors.New("down")
	widget  = requirement.API{Group: "example.com", Version: "v1", Kind: "Widget"}
)

// cluster has package "there" in 1.5.0 and serves the API [widget].
func cluster() requirement.Cluster {
	return requirement.Cluster{
		Kubernetes: "v1.33.4-gke.100",
		OpenShift:  "4.14.1",
		Serves:     func(api requirement.API) bool { return api == widget },
		Extensions: []requirement.Extension{
			{Name: "rc", Package: "candidate", Version: "2.0.0-rc.1"},
			{Name: "release", Package: "released", Version: "1.0.0+2"},
			{Name: "there", Package: "there", Version: "1.5.0", Properties: []*requirement.Property{
				property("olm.gvk", `{"group":"example.com","version":"v1","kind":"Widget"}`),
				property("tier", `3`),
			}},
			{Name: "odd", Package: "odd", Version: "not a version"},
			{Name: "twice-a", Package: "twice", Version: "1.0.0"},
			{Name: "twice-b", Package: "twice", Version: "2.0.0"},
		},
	}
}

func property(name, value string) *requirement.Property {
	return &requirement.Property{Type: name, Value: json.RawMessage(value)}
}

func needsPackage(name, versions string) *requirement.Property {
	return property("olm.package.required", fmt.Sprintf(`{"packageName":%q,"versionRange":%q}`, name, versions))
}

func needsAPI(kind string) *requirement.Property {
	return property("olm.gvk.required", fmt.Sprintf(`{"group":"example.com","version":"v1","kind":%q}`, kind))
}

func constraint(value string) *requirement.Property { return property("olm.constraint", value) }

func rule(text string) *requirement.Property {
	return constraint(fmt.Sprintf(`{"cel":{"rule":%s}}`, quoted(text)))
}

func quoted(text string) string {
	encoded, err := json.Marshal(text)
	if err != nil {
		return err.Error()
	}
	return string(encoded)
}

func check(on requirement.Cluster, properties ...*requirement.Property) requirement.Result {
	return requirement.NewChecker(on).Check(requirement.Parse(properties, ""))
}

// texts of what is not met.
func texts(result requirement.Result) []string {
	var found []string
	for _, unmet := range result.Unmet {
		found = append(found, unmet.Text)
	}
	return found
}

// TestMet has nothing to say about what is there.
func TestMet(t *testing.T) {
	t.Parallel()
	tests := map[string]*requirement.Property{
		"package in range":                        needsPackage("there", ">=1.0.0 <2.0.0"),
		"package in one of two ranges":            needsPackage("there", "<1.0.0 || >=1.4.0"),
		"package in a range with a wildcard":      needsPackage("there", "1.x"),
		"pre-releases compare as any other":       needsPackage("candidate", ">=1.0.0"),
		"a release counts as its version":         needsPackage("released", "1.0.0"),
		"one of two extensions of a package":      needsPackage("twice", ">1.0.0"),
		"API":                                     needsAPI("Widget"),
		"OpenShift that is supported":             property("olm.maxOpenShiftVersion", `"4.15"`),
		"patches of an OpenShift minor":           property("olm.maxOpenShiftVersion", `"4.14"`),
		"OpenShift as a number":                   property("olm.maxOpenShiftVersion", `4.20`),
		"properties that state no need":           property("olm.gvk", `{"kind":1}`),
		"rule":                                    rule(`properties.exists(p, p.type == "tier" && p.value == 3)`),
		"rule on the package of an extension":     rule(`properties.exists(p, p.type == "olm.package" && p.value.packageName == "there")`),
		"rule that compares versions":             rule(`properties.exists(p, p.type == "olm.package" && semver_compare(p.value.version, "1.4.9") > 0)`),
		"rule with an index and constants":        rule(`properties[0].type in ["olm.gvk", "other"] && properties[0].value["kind"] == "Widget"`),
		"rule that maps and filters":              rule(`properties.filter(p, p.type == "tier").map(p, p.value) == [3.0]`),
		"constraint with a message":               constraint(`{"failureMessage":"m","gvk":{"group":"example.com","version":"v1","kind":"Widget"}}`),
		"neither of two":                          constraint(`{"not":{"constraints":[{"package":{"packageName":"a","versionRange":"1.x"}},{"package":{"packageName":"b","versionRange":"1.x"}}]}}`),
		"any, though another one is unreadable":   constraint(`{"any":{"constraints":[{"package":{"packageName":"there","versionRange":"1.x"}},{"cel":{"rule":"("}}]}}`),
		"any, though another one has a bad range": constraint(`{"any":{"constraints":[{"package":{"packageName":"a","versionRange":"?"}},{"package":{"packageName":"there","versionRange":"1.x"}}]}}`),
	}
	for name, stated := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(requirement.Result{}, check(cluster(), stated)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestUnmet(t *testing.T) {
	t.Parallel()
	const a = `{"package":{"packageName":"a","versionRange":"1.x"}}`
	const b = `{"package":{"packageName":"b","versionRange":"1.x"}}`
	const there = `{"package":{"packageName":"there","versionRange":"1.x"}}`
	tests := map[string]struct {
		stated *requirement.Property
		want   string
	}{
		"package that is not installed": {
			stated: needsPackage("a", ">=1.0.0"),
			want:   `requires package "a" in ">=1.0.0", which is not installed`,
		},
		"package out of range": {
			stated: needsPackage("there", ">=2.0.0"),
			want:   `requires package "there" in ">=2.0.0", but version "1.5.0" is installed`,
		},
		"both extensions of a package out of range": {
			stated: needsPackage("twice", ">=3.0.0"),
			want:   `requires package "twice" in ">=3.0.0", but versions "1.0.0", "2.0.0" are installed`,
		},
		"installed version that cannot be read is in no range": {
			stated: needsPackage("odd", ">=0.0.0"),
			want:   `requires package "odd" in ">=0.0.0", but version "not a version" is installed`,
		},
		"empty range": {
			stated: needsPackage("there", ""),
			want:   `requires package "there" in "", which is not a valid range`,
		},
		"range with an empty alternative": {
			stated: needsPackage("there", ">=9.0.0 || || <0.1.0"),
			want:   `requires package "there" in ">=9.0.0 || || <0.1.0", which is not a valid range`,
		},
		"API that is not served": {
			stated: needsAPI("Gadget"),
			want:   `requires API "example.com/v1, Kind=Gadget", which the cluster does not serve`,
		},
		"API of the core group": {
			stated: property("olm.gvk.required", `{"group":"","version":"v2","kind":"Pod"}`),
			want:   `requires API "v2, Kind=Pod", which the cluster does not serve`,
		},
		"OpenShift that is not supported": {
			stated: property("olm.maxOpenShiftVersion", `"4.9"`),
			want:   `supports OpenShift up to "4.9", the cluster has "4.14.1"`,
		},
		"OpenShift as a number, digit by digit": {
			stated: property("olm.maxOpenShiftVersion", `4.10`),
			want:   `supports OpenShift up to "4.10", the cluster has "4.14.1"`,
		},
		"OpenShift that is no version": {
			stated: property("olm.maxOpenShiftVersion", `"next"`),
			want:   `supports OpenShift up to "next", which is not a version`,
		},
		"property that is not JSON": {
			stated: property("olm.package.required", `{`),
			want:   `states a requirement by olm.package.required that cannot be read: unexpected end of JSON input`,
		},
		"package without a name": {
			stated: property("olm.package.required", `{"versionRange":"1.x"}`),
			want:   `states a requirement by olm.package.required that cannot be read: no packageName`,
		},
		"API without a kind": {
			stated: property("olm.gvk.required", `{"group":"g","version":"v1"}`),
			want:   `states a requirement by olm.gvk.required that cannot be read: no version or no kind`,
		},
		"constraint without a condition": {
			stated: constraint(`{"failureMessage":"m"}`),
			want:   `states a requirement by olm.constraint that cannot be read: a constraint with 0 conditions instead of one`,
		},
		"constraint with two conditions": {
			stated: constraint(`{"cel":{"rule":"true"},"any":{"constraints":[` + there + `]}}`),
			want:   `states a requirement by olm.constraint that cannot be read: a constraint with 2 conditions instead of one`,
		},
		"constraint of an unknown kind": {
			stated: constraint(`{"operator":{"name":"x"}}`),
			want:   `states a requirement by olm.constraint that cannot be read: json: unknown field "operator"`,
		},
		"constraint that is followed by another one": {
			stated: constraint(there + there),
			want:   `states a requirement by olm.constraint that cannot be read: more than one value`,
		},
		"list without constraints": {
			stated: constraint(`{"not":{"constraints":[]}}`),
			want:   `states a requirement by olm.constraint that cannot be read: an empty list of constraints`,
		},
		"message of the publisher": {
			stated: constraint(`{"failureMessage":"A binding\noperator is needed\u202e","any":{"constraints":[` + a + `,` + b + `]}}`),
			want: `A binding operator is needed (package "a" in "1.x", which is not installed,` +
				` or package "b" in "1.x", which is not installed)`,
		},
		"message of a part": {
			stated: constraint(`{"all":{"constraints":[` + there + `,{"failureMessage":"A is needed","package":{"packageName":"a","versionRange":"1.x"}}]}}`),
			want:   `requires package "a" in "1.x", which is not installed (A is needed)`,
		},
		"all: what is missing": {
			stated: constraint(`{"all":{"constraints":[` + a + `,` + there + `,` + b + `]}}`),
			want:   `requires package "a" in "1.x", which is not installed, and package "b" in "1.x", which is not installed`,
		},
		"not: what is there": {
			stated: constraint(`{"not":{"constraints":[` + a + `,` + there + `,{"gvk":{"group":"example.com","version":"v1","kind":"Widget"}}]}}`),
			want: `requires no package "there" in "1.x", but version "1.5.0" is installed,` +
				` and no API "example.com/v1, Kind=Widget", which the cluster serves`,
		},
		"nested": {
			stated: constraint(`{"any":{"constraints":[` + a + `,{"all":{"constraints":[` + b + `,{"not":{"constraints":[` + there + `]}}]}}]}}`),
			want: `requires package "a" in "1.x", which is not installed, or (package "b" in "1.x", which is not installed,` +
				` and no package "there" in "1.x", but version "1.5.0" is installed)`,
		},
		"many": {
			stated: constraint(`{"any":{"constraints":[` + strings.Repeat(`{"package":{"packageName":"a","versionRange":"1.x"}},`, 9) + a + `]}}`),
			want: `requires ` + strings.Repeat(`package "a" in "1.x", which is not installed, or `, 7) +
				`package "a" in "1.x", which is not installed, and 2 more`,
		},
		"rule": {
			stated: rule(`properties.exists(p, p.type == "tier" && p.value > 3)`),
			want:   `requires an extension for which the rule "properties.exists(p, p.type == \"tier\" && p.value > 3)" is true, which is not installed`,
		},
		"rule that must not be true": {
			stated: constraint(`{"not":{"constraints":[{"cel":{"rule":"properties.exists(p, p.type == 'tier')"}}]}}`),
			want:   `requires no extension for which the rule "properties.exists(p, p.type == 'tier')" is true, but it is for "there"`,
		},
		"negation of a rule that is not valid": {
			stated: constraint(`{"not":{"constraints":[{"cel":{"rule":"missing"}}]}}`),
			want:   `requires an extension by the rule "missing", which is not valid: undeclared reference to 'missing' (in container '')`,
		},
		"negation of a range that is not valid": {
			stated: constraint(`{"not":{"constraints":[{"package":{"packageName":"there","versionRange":"?"}}]}}`),
			want:   `requires no package "there" in "?", which is not a valid range`,
		},
		"rule without text": {
			stated: constraint(`{"cel":{}}`),
			want:   `states a requirement by olm.constraint that cannot be read: no rule`,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			result := check(cluster(), test.stated)
			if diff := cmp.Diff([]string{test.want}, texts(result)); diff != "" {
				t.Error(diff)
			}
			if result.Err != nil {
				t.Errorf("error %v", result.Err)
			}
		})
	}
}

func TestMinKubernetes(t *testing.T) {
	t.Parallel()
	const text = `requires Kubernetes "1.34" or later, the cluster has "v1.33.4-gke.100"`
	tests := map[string]struct {
		cluster, lowest string
		want            []string
	}{
		"lower":                              {cluster: "v1.33.4-gke.100", lowest: "1.34", want: []string{text}},
		"what a vendor adds is not older":    {cluster: "v1.33.4-gke.100", lowest: "1.33.4"},
		"build":                              {cluster: "1.36.0+k3s1", lowest: "v1.36.0"},
		"minor by number":                    {cluster: "1.10.0", lowest: "1.9.0"},
		"none":                               {cluster: "1.10.0", lowest: ""},
		"cannot be read":                     {cluster: "1.10.0", lowest: "latest"},
		"more numbers than a version has":    {cluster: "1.10.0", lowest: "9.9.9.9"},
		"the cluster is not known":           {cluster: "", lowest: "1.34"},
		"the cluster's version is not known": {cluster: "devel", lowest: "1.34"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			result := requirement.NewChecker(requirement.Cluster{Kubernetes: test.cluster}).
				Check(requirement.Parse(nil, test.lowest))
			if diff := cmp.Diff(test.want, texts(result)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestMaxOpenShift(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		cluster string
		value   string
		met     bool
	}{
		"no OpenShift":                       {cluster: "", value: `"4.1"`, met: true},
		"no OpenShift and no version":        {cluster: "", value: `{}`, met: true},
		"pre-release of the minor":           {cluster: "4.16.0-rc1", value: `"4.16"`, met: true},
		"pre-release of the next minor":      {cluster: "4.16.0-rc1", value: `"4.15"`},
		"patch is not looked at":             {cluster: "4.16.9", value: `"4.16.1"`, met: true},
		"no version":                         {cluster: "4.16.0", value: `[4]`},
		"the cluster's version is not known": {cluster: "devel", value: `"4.16"`, met: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			result := check(requirement.Cluster{OpenShift: test.cluster}, property("olm.maxOpenShiftVersion", test.value))
			if met := len(result.Unmet) == 0; met != test.met {
				t.Errorf("met: %t, want %t", met, test.met)
			}
		})
	}
}

// TestEveryProperty: several of one type are all kept, in the order of the
// catalog.
func TestEveryProperty(t *testing.T) {
	t.Parallel()
	got := texts(check(cluster(), needsAPI("B"), needsPackage("b", "1.x"), needsAPI("A"), needsAPI("Widget"), needsPackage("a", "1.x")))
	want := []string{
		`requires API "example.com/v1, Kind=B", which the cluster does not serve`,
		`requires package "b" in "1.x", which is not installed`,
		`requires API "example.com/v1, Kind=A", which the cluster does not serve`,
		`requires package "a" in "1.x", which is not installed`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestCandidates: only what would help if it came.
func TestCandidates(t *testing.T) {
	t.Parallel()
	result := check(cluster(), constraint(`{"any":{"constraints":[
		{"package":{"packageName":"b","versionRange":"1.x"}},
		{"package":{"packageName":"a","versionRange":"2.x"}},
		{"package":{"packageName":"a","versionRange":"1.x"}},
		{"package":{"packageName":"b","versionRange":"1.x"}},
		{"package":{"packageName":"bad","versionRange":"?"}},
		{"not":{"constraints":[{"package":{"packageName":"there","versionRange":"1.x"}}]}},
		{"all":{"constraints":[
			{"gvk":{"group":"z","version":"v1","kind":"Z"}},
			{"gvk":{"group":"example.com","version":"v1","kind":"Widget"}},
			{"gvk":{"group":"a","version":"v1","kind":"A"}}]}}]}}`))
	if len(result.Unmet) != 1 {
		t.Fatalf("%d unmet, want 1", len(result.Unmet))
	}
	packages := []requirement.PackageRange{{Package: "a", Range: "1.x"}, {Package: "a", Range: "2.x"}, {Package: "b", Range: "1.x"}}
	if diff := cmp.Diff(packages, result.Unmet[0].Packages); diff != "" {
		t.Error(diff)
	}
	apis := []requirement.API{{Group: "a", Version: "v1", Kind: "A"}, {Group: "z", Version: "v1", Kind: "Z"}}
	if diff := cmp.Diff(apis, result.Unmet[0].APIs); diff != "" {
		t.Error(diff)
	}
}

func TestUnknown(t *testing.T) {
	t.Parallel()
	on := cluster()
	on.APIsErr = errDown
	on.Serves = nil
	t.Run("it cannot be told", func(t *testing.T) {
		t.Parallel()
		result := check(on, needsPackage("there", "1.x"), needsAPI("Widget"))
		if !errors.Is(result.Err, errDown) || len(result.Unmet) > 0 {
			t.Errorf("got %v, want the error of the cluster alone", result)
		}
	})
	t.Run("it makes no difference", func(t *testing.T) {
		t.Parallel()
		result := check(on, needsAPI("Widget"), needsPackage("a", "1.x"))
		if result.Err != nil || len(result.Unmet) != 1 {
			t.Errorf("got %v, want the package alone", result)
		}
	})
}

func TestUnknownExtensions(t *testing.T) {
	t.Parallel()
	on := cluster()
	on.Extensions, on.ExtensionsErr = nil, errDown
	for name, property := range map[string]*requirement.Property{
		"a package":  needsPackage("there", "1.x"),
		"no package": constraint(`{"not":{"constraints":[{"package":{"packageName":"a","versionRange":"1.x"}}]}}`),
		"a rule":     rule("true"),
	} {
		if result := check(on, property); !errors.Is(result.Err, errDown) || len(result.Unmet) > 0 {
			t.Errorf("%s: got %v, want the error of the cluster alone", name, result)
		}
	}
	if result := check(on, needsPackage("there", "not a range")); result.Err != nil || len(result.Unmet) != 1 {
		t.Errorf("got %v, want what no cluster meets", result)
	}
}

func TestNeeds(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		properties    []*requirement.Property
		minKubernetes string
		want          requirement.Needs
	}{
		"nothing":    {},
		"packages":   {properties: []*requirement.Property{needsPackage("b", "1.x"), needsPackage("a", "?"), needsPackage("b", "2.x")}, want: requirement.Needs{Packages: []string{"a", "b"}}},
		"APIs":       {properties: []*requirement.Property{needsAPI("A")}, want: requirement.Needs{APIs: true}},
		"rules":      {properties: []*requirement.Property{rule("true")}, want: requirement.Needs{AnyPackage: true}},
		"OpenShift":  {properties: []*requirement.Property{property("olm.maxOpenShiftVersion", `"4.9"`)}},
		"Kubernetes": {minKubernetes: "1.20"},
		"nested": {
			properties: []*requirement.Property{constraint(`{"any":{"constraints":[{"not":{"constraints":[{"gvk":{"version":"v1","kind":"K"}}]}},{"package":{"packageName":"a","versionRange":"1.x"}}]}}`)},
			want:       requirement.Needs{APIs: true, Packages: []string{"a"}},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			list := requirement.Parse(test.properties, test.minKubernetes)
			if diff := cmp.Diff(test.want, list.Needs()); diff != "" {
				t.Error(diff)
			}
			if want := len(test.properties) == 0 && test.minKubernetes == ""; list.Empty() != want {
				t.Errorf("empty: %t, want %t", list.Empty(), want)
			}
		})
	}
}

func TestNeedsOfTwo(t *testing.T) {
	t.Parallel()
	got := requirement.Needs{Packages: []string{"a", "c"}, APIs: true}.
		With(requirement.Needs{Packages: []string{"b", "c"}, AnyPackage: true})
	want := requirement.Needs{Packages: []string{"a", "b", "c"}, APIs: true, AnyPackage: true}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestProvided(t *testing.T) {
	t.Parallel()
	got := requirement.Provided([]*requirement.Property{
		property("olm.gvk", `{"group":"b","version":"v1","kind":"K"}`),
		property("olm.gvk", `{"group":"a","version":"v2","kind":"K"}`),
		property("olm.gvk", `{"group":"a","version":"v1","kind":"K","extra":1}`),
		property("olm.gvk", `{"group":"b","version":"v1","kind":"K"}`),
		property("olm.gvk", `{"group":"no kind","version":"v1"}`),
		property("olm.gvk", `[]`),
		property("olm.gvk", `{`),
		property("olm.gvk.required", `{"group":"c","version":"v1","kind":"K"}`),
	})
	want := []requirement.API{
		{Group: "a", Version: "v1", Kind: "K"}, {Group: "a", Version: "v2", Kind: "K"}, {Group: "b", Version: "v1", Kind: "K"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestBounds crosses each bound on what is read.
func TestBounds(t *testing.T) {
	t.Parallel()
	padded := func(size int) string {
		value := `{"package":{"packageName":"there","versionRange":"1.x"}}`
		return value + strings.Repeat(" ", size-len(value))
	}
	long := func(size int) string { return "true" + strings.Repeat(" ", size-4) }
	deep := func(depth int) string { return strings.Repeat("(", depth) + "true" + strings.Repeat(")", depth) }
	tests := map[string]struct {
		stated *requirement.Property
		want   string // in the text, empty if it is met
	}{
		"value of 64 KiB":        {stated: constraint(padded(64 << 10))},
		"larger value":           {stated: constraint(padded(64<<10 + 1)), want: "cannot be read: longer than 65536 bytes"},
		"rule of 4 KiB":          {stated: rule(long(4096))},
		"longer rule":            {stated: rule(long(4097)), want: "not valid: longer than 4096 bytes"},
		"rule that nests":        {stated: rule(deep(10))},
		"rule that nests deeply": {stated: rule(deep(1000)), want: "not valid: "},
		"range of 4 KiB":         {stated: needsPackage("there", strings.Repeat("<2.0.0 ", 585)+"1")},
		"longer range":           {stated: needsPackage("there", strings.Repeat("<2.0.0 ", 600)), want: "not a valid range"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			result := check(cluster(), test.stated)
			got := strings.Join(texts(result), "")
			if result.Err != nil || (got == "") != (test.want == "") || !strings.Contains(got, test.want) {
				t.Errorf("got %q and %v, want %q", got, result.Err, test.want)
			}
		})
	}
}

// TestNumberOfRequirements: nothing meets a bundle that states too much, however
// much of it is there, and nothing more is said of it.
func TestNumberOfRequirements(t *testing.T) {
	t.Parallel()
	there := needsPackage("there", "1.x")
	value := string(there.Value)
	group := func(count int) *requirement.Property {
		condition := `{"package":` + value + `}`
		return constraint(`{"any":{"constraints":[` + strings.Repeat(condition+",", count-1) + condition + `]}}`)
	}
	// The types count, too.
	padded := func(size int) *requirement.Property {
		wide := *there
		wide.Value = []byte(value + strings.Repeat(" ", size-len(value)-len(there.Type)))
		return &wide
	}
	tests := map[string]struct {
		stated []*requirement.Property
		want   []string
	}{
		"256":               {stated: slices.Repeat([]*requirement.Property{there}, 256)},
		"257":               {stated: slices.Repeat([]*requirement.Property{there}, 257), want: []string{"states more than 256 requirements"}},
		"256 in groups":     {stated: []*requirement.Property{group(200), group(56)}},
		"257 in groups":     {stated: []*requirement.Property{group(200), group(56), there}, want: []string{"states more than 256 requirements"}},
		"128 KiB":           {stated: slices.Repeat([]*requirement.Property{padded(32 << 10)}, 4)},
		"more than 128 KiB": {stated: append(slices.Repeat([]*requirement.Property{padded(32 << 10)}, 3), padded(32<<10+1)), want: []string{"states requirements of more than 131072 bytes"}},
		"other properties":  {stated: append(slices.Repeat([]*requirement.Property{property("notes", value)}, 10_000), there)},
		"257, none of them there": {
			stated: slices.Repeat([]*requirement.Property{needsAPI("Absent")}, 257), want: []string{"states more than 256 requirements"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			result := check(cluster(), test.stated...)
			if diff := cmp.Diff(test.want, texts(result)); diff != "" || result.Err != nil {
				t.Errorf("error %v (-want +got)\n%s", result.Err, diff)
			}
		})
	}
}

// TestDepth: as many negations as fit turn the answer around as often.
func TestDepth(t *testing.T) {
	t.Parallel()
	for _, depth := range []int{2500, 2501} {
		stated := constraint(strings.Repeat(`{"not":{"constraints":[`, depth) +
			`{"package":{"packageName":"there","versionRange":"1.x"}}` + strings.Repeat(`]}}`, depth))
		if len(stated.Value) > 64<<10 {
			t.Fatalf("%d bytes", len(stated.Value))
		}
		result := check(cluster(), stated)
		if met, want := len(result.Unmet) == 0, depth%2 == 0; met != want {
			t.Errorf("%d negations: met is %t, want %t", depth, met, want)
		}
	}
}

// FuzzConstraint holds every value of every type against the contract of
// Unmet.
func FuzzConstraint(f *testing.F) {
	for _, seed := range []string{
		``, `null`, `{}`, `[]`, `"4.10"`, `4.10`, `{"packageName":"a","versionRange":">=1.0.0 || || <0.5.0"}`,
		`{"group":"g","version":"v1","kind":"K"}`, `{"all":{"constraints":[null]}}`,
		`{"failureMessage":"a\nb","not":{"constraints":[{"any":{"constraints":[{"cel":{"rule":"true"}},{"gvk":{"version":"v","kind":"K"}}]}}]}}`,
		`{"package":{"packageName":"there","versionRange":"1.x"}}`, `{"cel":{"rule":"properties[0].value.x"}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, value []byte) {
		var properties []*requirement.Property
		for _, name := range []string{"olm.package.required", "olm.gvk.required", "olm.constraint", "olm.maxOpenShiftVersion", "olm.gvk"} {
			properties = append(properties, &requirement.Property{Type: name, Value: value})
		}
		requirement.Provided(properties)
		list := requirement.Parse(properties, string(value))
		list.Needs()
		on := cluster()
		on.Extensions[0].Properties = properties
		result := requirement.NewChecker(on).Check(list)
		for _, unmet := range result.Unmet {
			checkText(t, unmet.Text)
			if len(unmet.Packages) > 32 || len(unmet.APIs) > 32 {
				t.Errorf("%d packages and %d APIs", len(unmet.Packages), len(unmet.APIs))
			}
		}
		again := requirement.NewChecker(on).Check(requirement.Parse(properties, string(value)))
		if diff := cmp.Diff(result.Unmet, again.Unmet); diff != "" {
			t.Error(diff)
		}
	})
}

func checkText(t *testing.T, text string) {
	t.Helper()
	if text == "" || len(text) > 512 || strings.ContainsAny(text, "\r\n\t\x00\u2028\u2029") || !utf8.ValidString(text) {
		t.Errorf("not one bounded line: %q", text)
	}
}

func BenchmarkCheck(b *testing.B) {
	list := requirement.Parse([]*requirement.Property{
		needsPackage("there", ">=1.0.0 <2.0.0"), needsPackage("released", "1.x"), needsAPI("Widget"),
		property("olm.maxOpenShiftVersion", `"4.15"`),
		constraint(`{"any":{"constraints":[{"package":{"packageName":"a","versionRange":"1.x"}},{"package":{"packageName":"there","versionRange":"1.x"}}]}}`),
	}, "1.25.0")
	checker := requirement.NewChecker(cluster())
	b.ReportAllocs()
	for b.Loop() {
		if result := checker.Check(list); len(result.Unmet) > 0 {
			b.Fatal(result)
		}
	}
}

// TestMetAllocatesNothing, because most requirements of most versions are met.
//
//nolint:paralleltest // allocations of other tests would count
func TestMetAllocatesNothing(t *testing.T) {
	list := requirement.Parse([]*requirement.Property{needsPackage("there", "1.x"), needsAPI("Widget")}, "1.25.0")
	checker := requirement.NewChecker(cluster())
	checker.Check(list)
	if allocations := testing.AllocsPerRun(100, func() { checker.Check(list) }); allocations > 0 {
		t.Errorf("%v allocations", allocations)
	}
}

// TestCovers checks statements of two bundles against the same cluster.
func TestCovers(t *testing.T) {
	t.Parallel()
	pkg := func(versions string) *requirement.Property {
		return &requirement.Property{
			Type: "olm.package.required", Value: json.RawMessage(fmt.Sprintf(`{"packageName":"q","versionRange":%q}`, versions)),
		}
	}
	kubernetes := func(lowest string) requirement.List { return requirement.Parse(nil, lowest) }
	packages := func(versions string) requirement.List {
		return requirement.Parse([]*requirement.Property{pkg(versions)}, "")
	}
	tests := map[string]struct {
		one, other requirement.List
		want       bool
	}{
		"the same package":     {packages(">=1.0.0"), packages(">=1.0.0"), true},
		"another range":        {packages(">=1.1.0"), packages(">=1.0.0"), false},
		"the same Kubernetes":  {kubernetes("1.30.0"), kubernetes("1.30.0"), true},
		"an older Kubernetes":  {kubernetes("1.30.0"), kubernetes("v1.29"), true},
		"a newer Kubernetes":   {kubernetes("1.30.0"), kubernetes("1.30.1"), false},
		"of two kinds":         {kubernetes("1.30.0"), packages(">=1.0.0"), false},
		"of two kinds, turned": {packages(">=1.0.0"), kubernetes("1.30.0"), false},
	}
	checker := requirement.NewChecker(requirement.Cluster{Kubernetes: "1.28.0"})
	for name, tc := range tests {
		one, other := checker.Check(tc.one).Unmet, checker.Check(tc.other).Unmet
		if len(one) != 1 || len(other) != 1 {
			t.Fatalf("%s: %v and %v are not met", name, one, other)
		}
		if got := one[0].Covers(other[0]); got != tc.want {
			t.Errorf("%s: Covers() = %t, want %t", name, got, tc.want)
		}
	}
}
