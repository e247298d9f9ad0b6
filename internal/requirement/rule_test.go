package requirement_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/clusterextensions/operator-controller/internal/requirement"
)

func TestRuleIsTrue(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		rule string
		want bool
	}{
		"for one extension":             {rule: `properties.exists(p, p.type == "tier")`, want: true},
		"all of it on one extension":    {rule: `properties.exists(p, p.type == "tier") && properties.exists(p, p.type == "olm.package" && p.value.packageName == "odd")`},
		"no such key is not true":       {rule: `properties[0].value.absent == 1`},
		"and neither is its opposite":   {rule: `properties[0].value.absent != 1`},
		"a key that may be absent":      {rule: `properties.exists(p, p.type == "olm.gvk" && !has(p.value.absent))`, want: true},
		"no such index":                 {rule: `properties[99].type == "tier"`},
		"division by zero":              {rule: `1 / 0 == 1`},
		"not a bool":                    {rule: `properties[1].value`},
		"version that is not valid":     {rule: `semver_compare("1", "1.0.0") >= 0`},
		"lower version":                 {rule: `semver_compare("1.0.0-rc.1", "1.0.0") == -1`, want: true},
		"build does not count":          {rule: `semver_compare("1.0.0+1", "1.0.0+2") == 0`, want: true},
		"version out of a property":     {rule: `properties.exists(p, p.type == "olm.package" && p.value.packageName == "there" && semver_compare(p.value.version, "2.0.0") < 0)`, want: true},
		"version that is no text":       {rule: `semver_compare(properties[1].value, "1.0.0") == 0`},
		"parts of properties in a list": {rule: `properties.map(p, p.type).exists(n, n == "tier")`, want: true},
		"parts of properties in a map":  {rule: `{"a": properties[1].value}.a == 3.0`, want: true},
		"constant list of lists":        {rule: `[1, 2] in [[1, 2], [3]]`, want: true},
		"text that is put together":     {rule: `["ti" + "er"].exists(n, properties.exists(p, p.type == n))`, want: true},
		"conversion":                    {rule: `int(properties[1].value) == 3 && string(properties[1].value) == "3"`, want: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			result := check(cluster(), rule(test.rule))
			if result.Err != nil || (len(result.Unmet) == 0) != test.want {
				t.Errorf("got %v, want %t", result, test.want)
			}
			for _, text := range texts(result) {
				if strings.Contains(text, "not valid") {
					t.Error(text)
				}
			}
		})
	}
}

func TestRuleIsNotValid(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ rule, want string }{
		"syntax":                    {rule: `properties.exists(`, want: "Syntax error"},
		"type":                      {rule: `1 + 1`, want: "its type is int"},
		"unknown name":              {rule: `bundle.name == "x"`, want: "undeclared reference to 'bundle'"},
		"regular expression":        {rule: `properties[0].type.matches("a*")`, want: "undeclared reference to 'matches'"},
		"time":                      {rule: `timestamp("2024-01-01T00:00:00Z").getHours("Local") == 1`, want: "undeclared reference to 'timestamp'"},
		"message":                   {rule: `google.protobuf.BoolValue{value: true} == true`, want: "undeclared type"},
		"lists in lists":            {rule: `[properties.map(p, p.type)].size() == 1`, want: "a list or map may hold"},
		"lists in mapped lists":     {rule: `properties.map(p, [p, p]).size() == 1`, want: "a list or map may hold"},
		"lists in maps":             {rule: `{"a": [properties]}.size() == 1`, want: "a list or map may hold"},
		"lists in lists, by choice": {rule: `[true ? [properties] : [properties]].size() == 1`, want: "a list or map may hold"},
		"lists in lists, disguised": {rule: `[dyn([properties])].size() == 1`, want: "a list or map may hold"},
		"sums of what may be lists": {rule: `properties.exists(p, [p.value + p.value].size() == 1)`, want: "a list or map may hold"},
		"computed index":            {rule: `properties.exists(p, {}[dyn(p)] == 1)`, want: "an index may be a constant only"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := strings.Join(texts(check(cluster(), rule(test.rule))), "\n")
			if !strings.Contains(got, "which is not valid: "+test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
			checkText(t, got)
		})
	}
}

// loops of three levels around a body.
func loops(body string) string {
	for i := range 3 {
		body = fmt.Sprintf("properties.all(p%d, %s)", i, body)
	}
	return body
}

func doublings(count int) string {
	text := `t0 == ""`
	for i := range count {
		text = fmt.Sprintf("[t%d + t%d].exists(t%d, %s)", i+1, i+1, i, text)
	}
	return fmt.Sprintf("['12345678'].exists(t%d, %s)", count, text)
}

// hostile rules take as much work as they can for their length.
var hostile = map[string]string{
	"loops":                   loops("true"),
	"constants":               loops("(" + strings.Repeat("false || ", 400) + "true)"),
	"negations":               loops(strings.Repeat("!!", 1000) + "true"),
	"choices":                 loops(strings.Repeat("(true ? ", 40) + "true" + strings.Repeat(" : false)", 40)),
	"comparison of all":       loops("properties == properties"),
	"search in all":           loops("properties in [properties]"),
	"list of constants":       loops("[p0," + strings.Repeat("1,", 1500) + "1].size() > 0"),
	"map of constants":        loops("{p0.type:1," + strings.Repeat("1:1,", 500) + "2:1}.size() > 0"),
	"keys of a wide map":      "properties.filter(p, p.type == 'wide').all(p, " + loops("p.value.exists(k, true)") + ")",
	"comparison of wide maps": "properties.filter(p, p.type == 'wide').all(p, " + loops("p.value == p.value") + ")",
	"comparison of deep maps": "properties.filter(p, p.type == 'deep').all(p, " + loops("p.value == p.value") + ")",
	"length of a long text":   "properties.filter(p, p.type == 'long').all(p, " + loops("size(p.value) > 0") + ")",
	"search in a long text":   "properties.filter(p, p.type == 'long').all(p, " + loops("!p.value.contains('"+strings.Repeat("x", 1000)+"y')") + ")",
	"number of a long text":   "properties.filter(p, p.type == 'long').all(p, " + loops("int(p.value) == 1 || true") + ")",
	"long versions":           "properties.filter(p, p.type == 'long').all(p, " + loops("semver_compare('1.0.0-' + p.value, '1.0.0-' + p.value) == 0") + ")",
	"text that doubles":       doublings(28),
	"mapped loops":            loops("properties.map(p, properties).size() > 0"),
}

// hostileCluster has count extensions that are made for the hostile rules.
func hostileCluster(count int) requirement.Cluster {
	var wide strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&wide, `"key%d":"value",`, i)
	}
	properties := []*requirement.Property{
		property("wide", "{"+wide.String()+`"last":1}`),
		property("long", `"`+strings.Repeat("x", 65000)+`"`),
		property("deep", strings.Repeat("[", 9000)+strings.Repeat("]", 9000)),
	}
	for i := range 60 {
		properties = append(properties, property("olm.gvk", fmt.Sprintf(`{"group":"g%d","kind":"K","version":"v1"}`, i)))
	}
	var on requirement.Cluster
	for i := range count {
		on.Extensions = append(on.Extensions, requirement.Extension{Name: fmt.Sprint(i), Package: "p", Version: "1.0.0", Properties: properties})
	}
	return on
}

// TestHostileRules end, and are neither met nor unmet.
func TestHostileRules(t *testing.T) {
	t.Parallel()
	on := hostileCluster(1)
	for name, text := range hostile {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, stated := range []*requirement.Property{rule(text), constraint(group("not", string(rule(text).Value)))} {
				result := check(on, stated)
				cost, ok := errors.AsType[*requirement.CostError](result.Err)
				if !ok || cost.Rule != text || len(result.Unmet) > 0 {
					t.Errorf("got %v, want a rule that costs too much", result)
				}
			}
		})
	}
}

func TestRuleThatCostsTooMuchOnOneExtension(t *testing.T) {
	t.Parallel()
	on := hostileCluster(1)
	on.Extensions = append(on.Extensions, requirement.Extension{Name: "small", Package: "p", Version: "1.0.0"})
	result := check(on, rule(loops("true")))
	if result.Err != nil || len(result.Unmet) > 0 {
		t.Errorf("got %v, want met by the other extension", result)
	}
}

// TestBudget: all the rules together spend it, by what they are and by what they
// do. Once it is spent, rules are no longer evaluated, whatever they are. What is
// no rule still is checked, and so is what was evaluated before.
func TestBudget(t *testing.T) {
	t.Parallel()
	extensions := func(count int, properties ...*requirement.Property) requirement.Cluster {
		extension := requirement.Extension{Name: "e", Package: "p", Version: "1.0.0", Properties: properties}
		return requirement.Cluster{Extensions: slices.Repeat([]requirement.Extension{extension}, count)}
	}
	long := property("long", `"`+strings.Repeat("x", 60<<10)+`"`)
	named := property(strings.Repeat("x", 20<<10), "1")
	different := make([]*requirement.Property, 1000)
	for i := range different {
		different[i] = rule(fmt.Sprintf("%d == 0", i+1))
	}
	tests := map[string]struct {
		on    requirement.Cluster
		spend []*requirement.Property
	}{
		"many rules":            {on: extensions(1), spend: different},
		"many evaluations":      {on: extensions(21, named, named), spend: []*requirement.Property{rule(expensive)}},
		"properties to be read": {on: extensions(20, slices.Repeat([]*requirement.Property{long}, 4)...), spend: []*requirement.Property{rule("false")}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			checker := requirement.NewChecker(test.on)
			is := func(want bool, stated *requirement.Property) {
				t.Helper()
				result := checker.Check(requirement.Parse([]*requirement.Property{stated}, ""))
				_, spent := errors.AsType[*requirement.CostError](result.Err)
				if len(result.Unmet) > 0 || spent == want || (result.Err == nil) != want {
					t.Errorf("got %v, want met: %t", result, want)
				}
			}
			before, after := rule("properties.size() > 0"), rule("1 == 1")
			is(true, before)
			// Bundles do not state that many.
			for some := range slices.Chunk(test.spend, 250) {
				checker.Check(requirement.Parse(some, ""))
			}
			is(false, after)
			is(true, before)
			is(true, needsPackage("p", "1.x"))
		})
	}
}

// expensive in few steps, if the types of properties are long.
var expensive = strings.Repeat("properties.all(p, size(p.type + p.type) > 0 && ", 3) + "true" + strings.Repeat(")", 3)

// TestPropertiesOfRules: what is not valid or too large is left out, and the
// package is stated.
func TestPropertiesOfRules(t *testing.T) {
	t.Parallel()
	large := func(size int) string { return `"` + strings.Repeat("x", size-2) + `"` }
	tests := map[string]struct {
		properties []*requirement.Property
		want       []string // types
	}{
		"none":                    {want: []string{"olm.package"}},
		"package of the catalog":  {properties: []*requirement.Property{property("olm.package", `{}`), property("a", `1`)}, want: []string{"olm.package", "a"}},
		"every type of value":     {properties: []*requirement.Property{property("a", `null`), property("b", `[true]`)}, want: []string{"a", "b", "olm.package"}},
		"not JSON":                {properties: []*requirement.Property{property("a", `{`), property("b", `1`)}, want: []string{"b", "olm.package"}},
		"64 KiB":                  {properties: []*requirement.Property{property("a", large(64<<10))}, want: []string{"a", "olm.package"}},
		"more":                    {properties: []*requirement.Property{property("a", large(64<<10+1))}, want: []string{"olm.package"}},
		"256 KiB, as many as fit": {properties: slices.Repeat([]*requirement.Property{property("a", large(60<<10))}, 6), want: []string{"a", "a", "a", "a", "olm.package"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			on := requirement.Cluster{Extensions: []requirement.Extension{{Name: "e", Package: "p", Version: "1.0.0", Properties: test.properties}}}
			text := `properties.map(p, p.type) == ["` + strings.Join(test.want, `", "`) + `"]`
			if result := check(on, rule(text)); result.Err != nil || len(result.Unmet) > 0 {
				t.Errorf("got %v, want %s", result, text)
			}
		})
	}
}

// TestConcurrentChecks share a list but not a checker.
func TestConcurrentChecks(t *testing.T) {
	t.Parallel()
	list := requirement.Parse([]*requirement.Property{rule(`properties.exists(p, p.type == "tier")`), needsPackage("there", "1.x")}, "")
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			if result := requirement.NewChecker(cluster()).Check(list); result.Err != nil || len(result.Unmet) > 0 {
				t.Errorf("got %v, want met", result)
			}
		})
	}
	group.Wait()
}

func FuzzRule(f *testing.F) {
	for _, text := range hostile {
		f.Add(text)
	}
	for _, text := range []string{
		`properties.exists(p, p.type == "olm.package" && semver_compare(p.value.version, "1.0.0") >= 0)`,
		`properties[0].value["x"] == [1, {"a": 2.0}]`, `has(properties[0].value.x)`, `b"a" + b"\xff" == bytes("x")`, `type(1) == int`, `(`, "\x00",
	} {
		f.Add(text)
	}
	on := hostileCluster(1)
	f.Fuzz(func(t *testing.T, text string) {
		result := check(on, rule(text))
		for _, text := range texts(result) {
			checkText(t, text)
		}
		if _, ok := errors.AsType[*requirement.CostError](result.Err); result.Err != nil && !ok {
			t.Errorf("error %v", result.Err)
		}
	})
}

// BenchmarkRule is a rule that publishers might write, for 50 extensions of 60
// properties.
func BenchmarkRule(b *testing.B) {
	list := requirement.Parse([]*requirement.Property{
		rule(`properties.exists(p, p.type == "olm.package" && p.value.packageName == "q" && semver_compare(p.value.version, "1.0.0") >= 0)`),
	}, "")
	on := hostileCluster(50)
	for i := range on.Extensions {
		on.Extensions[i].Properties = on.Extensions[i].Properties[3:]
	}
	b.ReportAllocs()
	for b.Loop() {
		requirement.NewChecker(on).Check(list)
	}
}

// BenchmarkHostileRules spends the budget of a checker.
func BenchmarkHostileRules(b *testing.B) {
	on := hostileCluster(50)
	for name, text := range hostile {
		list := requirement.Parse([]*requirement.Property{rule(text)}, "")
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				requirement.NewChecker(on).Check(list)
			}
		})
	}
}
