package explain

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/clusterextensions/operator-controller/internal/controller"
	"github.com/clusterextensions/operator-controller/internal/requirement"
)

func TestFactsOfACluster(t *testing.T) {
	t.Parallel()
	none := clusterFacts{}
	if cluster, err := none.cluster(); cluster != nil || err != nil {
		t.Errorf("without any fact: %v, %v", cluster, err)
	}
	some := clusterFacts{
		kubernetes: "v1.36.0-rc.1+vendor", openShift: "4.20",
		serves: []string{"g.example/v1/Kind", "v1/Pod", "/v1/Node"}, extensions: []string{"base=1.0.0+2"},
	}
	cluster, err := some.cluster()
	if err != nil {
		t.Fatal(err)
	}
	for api, want := range map[requirement.API]bool{
		{Group: "g.example", Version: "v1", Kind: "Kind"}: true,
		{Version: "v1", Kind: "Pod"}:                      true,
		{Version: "v1", Kind: "Node"}:                     true,
		{Version: "v1", Kind: "Kind"}:                     false,
	} {
		if got := cluster.Serves(api); got != want {
			t.Errorf("serves %v = %v, want %v", api, got, want)
		}
	}
	want := []requirement.Extension{{Name: "base", Package: "base", Version: "1.0.0+2"}}
	if diff := cmp.Diff(want, cluster.Extensions); diff != "" {
		t.Errorf("extensions: -want +got\n%s", diff)
	}
}

func TestFactsThatMakeNoSense(t *testing.T) {
	t.Parallel()
	for text, facts := range map[string]clusterFacts{
		`--kubernetes "new"`:    {kubernetes: "new"},
		`--openshift "4"`:       {openShift: "4"},
		`--serves "Kind"`:       {serves: []string{"Kind"}},
		`--serves "g/v1/"`:      {serves: []string{"g/v1/"}},
		`--serves "g/v1/K/x"`:   {serves: []string{"g/v1/K/x"}},
		`--extension "base"`:    {extensions: []string{"base"}},
		`--extension "=1.0.0"`:  {extensions: []string{"=1.0.0"}},
		`--extension "base=>1"`: {extensions: []string{"base=>1"}},
	} {
		if _, err := facts.cluster(); err == nil || !strings.HasPrefix(err.Error(), text) {
			t.Errorf("got error %v, want one about %s", err, text)
		}
	}
}

// Nothing that a catalog says can play with the terminal.
func TestTablesAreHarmless(t *testing.T) {
	t.Parallel()
	shown := answer{Error: "none", LeftOut: []leftOutBundle{{
		Name: "a\x1b[2Jb\tc\nd", Version: "\u202e1.0.0", Detail: "e\rf",
	}}}
	var output bytes.Buffer
	if err := shown.printText(&output); err != nil {
		t.Fatal(err)
	}
	if strings.ContainsAny(output.String(), "\x1b\t\r\u202e") || strings.Count(output.String(), "\n") != 4 {
		t.Errorf("got %q", &output)
	}
}

// TestLookupsAreSaid has an extension whose spec lets templates look at the cluster.
func TestLookupsAreSaid(t *testing.T) {
	t.Parallel()
	for _, may := range []bool{true, false} {
		lines := strings.Join(answerOf(controller.Explanation{MayLookUp: may}).summary(), "\n")
		if strings.Contains(lines, "templates may look at the cluster, by spec.config.inline.allowLookup") != may {
			t.Errorf("may: %t, said is %q", may, lines)
		}
	}
}

// TestPollingIsReported covers a catalog without a poll interval.
func TestPollingIsReported(t *testing.T) {
	t.Parallel()
	const text = `the controller does not check catalog "c" for newer versions`
	found := answerOf(controller.Explanation{Polling: text})
	if lines := found.summary(); !slices.Contains(lines, text) {
		t.Errorf("the summary is %q", lines)
	}
}
