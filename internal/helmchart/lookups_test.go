package helmchart_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterextensions/operator-controller/internal/bundle"
	"github.com/clusterextensions/operator-controller/internal/helmchart"
)

// renderAt renders a chart whose templates may look at a cluster; nil for none.
func (e example) renderAt(t *testing.T, engine helmchart.Engine, lookup bundle.ChartLookup) (bundle.Rendered, error) {
	t.Helper()
	content, err := bundle.Parse(e.files)
	if err != nil {
		t.Fatal(err)
	}
	config, err := bundle.ParseConfig(content, namespace, []byte("allowLookup: true"))
	if err != nil {
		t.Fatal(err)
	}
	return bundle.Render(content, bundle.Options{
		InstallNamespace: namespace, Config: config, Lookup: lookup,
		Charts: engine.For(t.Context()), Release: bundle.ChartRelease{Name: release, Kubernetes: kubernetes},
	})
}

// looking is a chart with the value of a template in its only object.
func looking(value string) example {
	return web(map[string]string{"templates/app.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: app}\ndata:\n  found: {{ " + value + " | toJson | quote }}\n"})
}

// answering has the same answer to every question, and the questions.
func answering(answer string, asked *[]bundle.LookupRequest) bundle.ChartLookup {
	return func(_ context.Context, one bundle.LookupRequest) ([]byte, error) {
		*asked = append(*asked, one)
		if answer == "" {
			return nil, nil
		}
		return []byte(answer), nil
	}
}

// TestLookup has templates that look at a cluster: what they ask for, and what they get, is as with
// Helm.
func TestLookup(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		value  string
		answer string
		asked  bundle.LookupRequest
		want   string
	}{
		"an object": {
			value: `(lookup "v1" "Secret" "ns" "db").data.n`, answer: `{"kind":"Secret","apiVersion":"v1","data":{"n":3}}`,
			asked: bundle.LookupRequest{APIVersion: "v1", Kind: "Secret", Namespace: "ns", Name: "db"}, want: "3",
		},
		"none": {
			value: `lookup "v1" "Secret" "ns" "db"`,
			asked: bundle.LookupRequest{APIVersion: "v1", Kind: "Secret", Namespace: "ns", Name: "db"}, want: "{}",
		},
		"of the cluster": {
			value: `(lookup "v1" "Namespace" "" "ns").kind`, answer: `{"kind":"Namespace","apiVersion":"v1"}`,
			asked: bundle.LookupRequest{APIVersion: "v1", Kind: "Namespace", Name: "ns"}, want: `"Namespace"`,
		},
		"a list": {
			value: `len (lookup "apps/v1" "Deployment" "ns" "").items`, answer: `{"kind":"DeploymentList","apiVersion":"apps/v1","items":[{},{}]}`,
			asked: bundle.LookupRequest{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "ns"}, want: "2",
		},
		"of items of a list": {
			value: `(index (lookup "v1" "Pod" "" "").items 0).kind`, answer: `{"kind":"PodList","apiVersion":"v1","items":[{"metadata":{"name":"a"}}]}`,
			asked: bundle.LookupRequest{APIVersion: "v1", Kind: "Pod"}, want: `"Pod"`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var asked []bundle.LookupRequest
			rendered, err := looking(test.value).renderAt(t, helmchart.New(), answering(test.answer, &asked))
			if err != nil {
				t.Fatal(err)
			}
			found, _, _ := unstructured.NestedString(rendered.Objects[0].Object, "data", "found")
			if found != test.want || rendered.Lookups != bundle.LookupsMade {
				t.Errorf("found %s, lookups %q; want %s", found, rendered.Lookups, test.want)
			}
			if diff := cmp.Diff([]bundle.LookupRequest{test.asked}, asked); diff != "" {
				t.Errorf("asked for (-want +got):\n%s", diff)
			}
		})
	}
}

// TestLookupIsOffUnlessAllowed: vector C7. Nobody is asked, and the result depends on the chart alone.
func TestLookupIsOffUnlessAllowed(t *testing.T) {
	t.Parallel()
	content, err := bundle.Parse(looking(`lookup "v1" "Secret" "ns" "db"`).files)
	if err != nil {
		t.Fatal(err)
	}
	for inline, want := range map[string]bundle.Lookups{"": bundle.LookupsRefused, "allowLookup: false": bundle.LookupsRefused, "allowLookup: true": bundle.LookupsMade} {
		config, err := bundle.ParseConfig(content, namespace, []byte(inline))
		if err != nil {
			t.Fatal(err)
		}
		var asked []bundle.LookupRequest
		rendered, err := bundle.Render(content, bundle.Options{
			InstallNamespace: namespace, Config: config, Charts: helmchart.New().For(t.Context()), Lookup: answering("", &asked),
		})
		if err != nil || rendered.Lookups != want || (len(asked) > 0) != (want == bundle.LookupsMade) {
			t.Errorf("%q: lookups %q after %d questions, error %v; want %q", inline, rendered.Lookups, len(asked), err, want)
		}
	}
	if _, err := bundle.ParseConfig(content, namespace, []byte("allowLookup: yes please")); !errors.As(err, new(*bundle.ConfigError)) {
		t.Errorf("error = %v, want one of the configuration", err)
	}
}

// TestLookupWithoutACluster finds nothing, which is said if anything was looked up.
func TestLookupWithoutACluster(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]bundle.Lookups{`"no"`: bundle.NoLookups, `lookup "v1" "Pod" "" ""`: bundle.LookupsUnanswered} {
		rendered, err := looking(value).renderAt(t, helmchart.New(), nil)
		if err != nil || rendered.Lookups != want {
			t.Errorf("%s: lookups %q, error %v; want %q", value, rendered.Lookups, err, want)
		}
	}
}

// TestLookupsAreBounded has templates that ask for too much. None of them is judged for that: the
// cluster may have less of it the next time.
func TestLookupsAreBounded(t *testing.T) {
	t.Parallel()
	const each = `{{ range until %d }}{{ $_ := lookup "v1" "ConfigMap" "ns" (printf "a%%d" .) }}{{ end }}`
	object := func(bytes int) bundle.ChartLookup {
		const empty = `{"kind":"ConfigMap","apiVersion":"v1","x":""}`
		return func(context.Context, bundle.LookupRequest) ([]byte, error) {
			return []byte(strings.Replace(empty, `""`, `"`+strings.Repeat("x", bytes-len(empty))+`"`, 1)), nil
		}
	}
	slow := func(wait time.Duration) bundle.ChartLookup {
		return func(ctx context.Context, _ bundle.LookupRequest) ([]byte, error) {
			select {
			case <-time.After(wait):
				return nil, nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
	}
	for name, test := range map[string]struct {
		template string
		lookup   bundle.ChartLookup
		limits   func(*helmchart.Limits)
		want     string // empty for no error
	}{
		"as many as there can be": {template: fmt.Sprintf(each, 100), lookup: object(100)},
		"one more":                {template: fmt.Sprintf(each, 101), lookup: object(100), want: "templates look up more than 100 objects and lists"},
		"for ever":                {template: fmt.Sprintf(each, 1000000), lookup: object(100), want: "templates look up more than 100 objects and lists"},
		"as large as one can be":  {template: fmt.Sprintf(each, 1), lookup: object(1 << 20)},
		"larger": {
			template: fmt.Sprintf(each, 1), lookup: object(1<<20 + 1),
			want: `looking up "ConfigMap" of "v1" "a0" in namespace "ns" for a template: there are more than 1048576 bytes of it`,
		},
		"10 MB":                    {template: fmt.Sprintf(each, 1), lookup: object(10 << 20), want: "more than 1048576 bytes of it"},
		"as large as all can be":   {template: fmt.Sprintf(each, 8), lookup: object(1 << 20)},
		"larger together":          {template: fmt.Sprintf(each, 9), lookup: object(1<<20 - 1<<10), want: "what templates look up comes to more than 8388608 bytes"},
		"a name that is too long":  {template: `{{ lookup "v1" "ConfigMap" "ns" (repeat 5000 "x") }}`, lookup: object(100), want: "by names of more than 4096 bytes"},
		"a name without an end":    {template: `{{ lookup "v1" "ConfigMap" "ns" (repeat 10000000 "x") }}`, lookup: object(100), want: "by names of more than 4096 bytes"},
		"one that takes too long":  {template: fmt.Sprintf(each, 1), lookup: slow(time.Minute), limits: func(l *helmchart.Limits) { l.Lookup = 50 * time.Millisecond }, want: `"a0" in namespace "ns" for a template: it takes more than 50ms`},
		"all that takes too long":  {template: fmt.Sprintf(each, 20), lookup: slow(20 * time.Millisecond), limits: func(l *helmchart.Limits) { l.AllLookups = 100 * time.Millisecond }, want: "what templates look up is not all there after 100ms"},
		"what nobody can find out": {template: fmt.Sprintf(each, 1), lookup: failing("it rains"), want: `looking up "ConfigMap" of "v1" "a0" in namespace "ns" for a template: it rains`},
		"a long reason":            {template: fmt.Sprintf(each, 1), lookup: failing(strings.Repeat("x", 1000)), want: strings.Repeat("x", 509) + "…"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			engine := helmchart.New()
			if test.limits != nil {
				test.limits(&engine.Limits)
			}
			chart := web(map[string]string{"templates/more.yaml": test.template})
			_, err := chart.renderAt(t, engine, test.lookup)
			if (err != nil) != (test.want != "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("error = %v, want one with %q", err, test.want)
			}
			if isJudged := errors.As(err, new(*bundle.InvalidError)) || errors.As(err, new(*bundle.ConfigError)); isJudged {
				t.Errorf("error = %v judges the chart", err)
			}
		})
	}
}

func failing(text string) bundle.ChartLookup {
	return func(context.Context, bundle.LookupRequest) ([]byte, error) { return nil, errors.New(text) }
}

// TestTimeOfLookups is as long as the documents say.
func TestTimeOfLookups(t *testing.T) {
	t.Parallel()
	var left atomic.Int64
	_, err := looking(`lookup "v1" "Pod" "" ""`).renderAt(t, helmchart.New(), func(ctx context.Context, _ bundle.LookupRequest) ([]byte, error) {
		until, _ := ctx.Deadline()
		left.Store(int64(time.Until(until)))
		return nil, nil
	})
	if got := time.Duration(left.Load()); err != nil || got > 5*time.Second || got < 4*time.Second {
		t.Errorf("one lookup has %s, error %v; want 5s", got, err)
	}
	if got := helmchart.DefaultLimits().AllLookups; got != 30*time.Second {
		t.Errorf("all lookups have %s, want 30s", got)
	}
}

// TestEndWhileSomethingIsLookedUp has nobody wait for a rendering any more, which says nothing about the lookup.
func TestEndWhileSomethingIsLookedUp(t *testing.T) {
	t.Parallel()
	never := func(ctx context.Context, _ bundle.LookupRequest) ([]byte, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	engine := helmchart.New()
	engine.Limits.Wait = 500 * time.Millisecond
	if _, err := looking(`lookup "v1" "Pod" "" ""`).renderAt(t, engine, never); err == nil || !strings.Contains(err.Error(), "given up after 500ms") {
		t.Errorf("error = %v, want that it was given up", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	in := endlessChart()
	in.Files["templates/app.yaml"], in.Lookup = []byte(`{{ lookup "v1" "Pod" "" "" }}`), never
	if _, err := helmchart.New().For(ctx)(in); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error = %v, want that of the context", err)
	}
}

// TestCauseOfALookupIsKept is for those who wait for rights.
func TestCauseOfALookupIsKept(t *testing.T) {
	t.Parallel()
	cause := errors.New("it rains")
	_, err := looking(`lookup "v1" "Pod" "" ""`).renderAt(t, helmchart.New(), func(context.Context, bundle.LookupRequest) ([]byte, error) {
		return nil, cause
	})
	if !errors.Is(err, cause) {
		t.Errorf("error = %v, want one of the cause", err)
	}
}

// TestRefusalAfterALookup is one of what the cluster had, and says nothing about the chart. What
// can have the content of Secrets in it is not told.
func TestRefusalAfterALookup(t *testing.T) {
	t.Parallel()
	const secret = `{"kind":"Secret","apiVersion":"v1","data":{"p":"aHVudGVyMg"}}`
	// first reads the Secret, to go on with what is in it.
	const first = `{{ $p := (lookup "v1" "Secret" "ns" "db").data.p }}`
	for name, test := range map[string]struct {
		template string
		answer   string
		want     string
	}{
		"what is missing":           {`{{ if not (lookup "v1" "Secret" "ns" "db") }}{{ fail "make the Secret first" }}{{ end }}`, "", "templates/more.yaml:1:48): make the Secret first"},
		"what fails to be rendered": {`{{ (lookup "v1" "Pod" "ns" "db").a.b.c }}`, "", "nil pointer evaluating interface"},
		"no object":                 {`{{ $_ := lookup "v1" "Pod" "ns" "db" }}[1]`, "", "chart/templates/more.yaml"},
		"of the core, spelled out":  {`{{ fail (lookup "/v1" "Secret" "ns" "db").data.p }}`, secret, "has failed at templates/more.yaml:1; why is not shown"},
		"content of a Secret":       {first + `{{ fail $p }}`, secret, "has failed at templates/more.yaml:1; why is not shown, as its templates have read Secrets"},
		"in an error of a template": {first + `{{ index $p $p }}`, secret, "has failed at templates/more.yaml:1; why"},
		"as a name of a template":   {first + `{{ tpl "{{ fail 1 }}" (dict "Template" (dict "Name" $p "BasePath" "x")) }}`, secret, "; why is not shown"},
		"as a name of an object":    {first + "\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ $p }} }", secret, "has failed at templates/more.yaml; why"},
		"as what is looked up":      {first + `{{ range until 200 }}{{ $_ := lookup "v1" "Pod" $p $p }}{{ end }}`, secret, "more than 100"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var asked []bundle.LookupRequest
			rendered, err := web(map[string]string{"templates/more.yaml": test.template}).renderAt(t, helmchart.New(), answering(test.answer, &asked))
			if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "aHVudGVyMg") {
				t.Errorf("error = %v, want one with %q", err, test.want)
			}
			if isJudged := errors.As(err, new(*bundle.InvalidError)) || errors.As(err, new(*bundle.ConfigError)); isJudged || len(rendered.Objects) > 0 {
				t.Errorf("error = %v judges the chart, with %d objects", err, len(rendered.Objects))
			}
		})
	}
	_, err := web(map[string]string{"templates/more.yaml": first + `{{ lookup "v1" "Pod" $p $p }}`}).renderAt(t, helmchart.New(),
		func(_ context.Context, asked bundle.LookupRequest) ([]byte, error) {
			if asked.IsForSecrets() {
				return []byte(secret), nil
			}
			return nil, errors.New("it rains")
		})
	if err == nil || !strings.Contains(err.Error(), "looking up an object, by names that are not shown") || strings.Contains(err.Error(), "aHVudGVyMg") {
		t.Errorf("error = %v, want one without names", err)
	}
}

// TestChartThatIsTooMuchIsJudgedAfterLookups: what templates take is theirs, whatever they have seen.
func TestChartThatIsTooMuchIsJudgedAfterLookups(t *testing.T) {
	t.Parallel()
	_, err := looking(`repeat 2147483647 (print (lookup "v1" "Pod" "" ""))`).renderAt(t, helmchart.New(), func(context.Context, bundle.LookupRequest) ([]byte, error) {
		return nil, nil
	})
	if !errors.As(err, new(*bundle.InvalidError)) || !strings.Contains(err.Error(), "bytes of memory") {
		t.Errorf("error = %v, want one about the memory", err)
	}
}

// TestLookupWithoutLeave has templates look up what they may not: they find what they find with Helm
// where there is no cluster, and that they have asked is said.
func TestLookupWithoutLeave(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		value, want string
		lookups     bundle.Lookups
	}{
		"an object":         {value: `lookup "v1" "Secret" "ns" "db"`, want: "{}", lookups: bundle.LookupsRefused},
		"of the cluster":    {value: `lookup "v1" "Namespace" "" "ns"`, want: "{}", lookups: bundle.LookupsRefused},
		"a list":            {value: `lookup "v1" "Pod" "ns" ""`, want: "{}", lookups: bundle.LookupsRefused},
		"what is in none":   {value: `dig "data" "n" "none" (lookup "v1" "Secret" "ns" "db")`, want: `"none"`, lookups: bundle.LookupsRefused},
		"more than may ask": {value: `range untilStep 0 1000 1 }}{{ $_ := lookup "v1" "Pod" "ns" "" }}{{ end }}{{ 1`, want: "1", lookups: bundle.LookupsRefused},
		"nothing":           {value: `1`, want: "1", lookups: bundle.NoLookups},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			content, err := bundle.Parse(looking(test.value).files)
			if err != nil {
				t.Fatal(err)
			}
			rendered, err := bundle.Render(content, bundle.Options{
				InstallNamespace: namespace, Charts: helmchart.New().For(t.Context()),
				Release: bundle.ChartRelease{Name: release, Kubernetes: kubernetes},
			})
			if err != nil {
				t.Fatal(err)
			}
			found, _, _ := unstructured.NestedString(rendered.Objects[0].Object, "data", "found")
			if found != test.want || rendered.Lookups != test.lookups {
				t.Errorf("found is %s, and lookups are %q; want %s and %q", found, rendered.Lookups, test.want, test.lookups)
			}
		})
	}
}
