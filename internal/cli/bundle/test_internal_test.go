package bundle

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/hook"
	"github.com/clusterextensions/operator-controller/internal/inspect"
)

func TestLinesOfTests(t *testing.T) {
	t.Parallel()
	of := func(apiVersion, kind string, took time.Duration, why string) inspect.ChartTest {
		return inspect.ChartTest{
			Hook:   hook.Hook{Object: &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind}}},
			Object: object.Key{Name: "t"}, Took: took, Why: why,
		}
	}
	for want, one := range map[string]inspect.ChartTest{
		"t: passed in 3 s":      of("v1", "Pod", 2600*time.Millisecond, ""),
		"t: passed in 0 s":      of("batch/v1", "Job", time.Millisecond, ""),
		"t: failed: it is late": of("batch/v1", "Job", time.Second, "it is late"),
		"t: created":            of("v1", "ConfigMap", 0, ""),
		"t: failed: forbidden":  of("v1", "ConfigMap", 0, "forbidden"),
	} {
		if got := resultOf(one).String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestFailureOfTests(t *testing.T) {
	t.Parallel()
	for want, results := range map[string][]string{
		"":                         {testPassed, testCreated},
		"1 test of 2 has failed":   {testPassed, testFailed},
		"2 tests of 3 have failed": {testFailed, testPassed, testFailed},
	} {
		var all []testResult
		for _, result := range results {
			all = append(all, testResult{Result: result})
		}
		got := ""
		if err := failureOf(all); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// What anybody has written cannot move a cursor, and logs keep their lines.
func TestTestsAreTold(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	command := &cobra.Command{}
	command.SetErr(&text)
	tell(command, "\x1b[2J runs")
	if want := "\uFFFD[2J runs\n"; text.String() != want {
		t.Errorf("got %q, want %q", text.String(), want)
	}
	text.Reset()
	result := testResult{Name: "t", Result: testFailed, Message: "\x1b[2Jgone", Logs: []inspect.ContainerLog{{Pod: "p", Container: "c", Text: "one\ntwo\n\n"}}}
	if err := result.print(&text); err != nil {
		t.Fatal(err)
	}
	if want := "t: failed: \uFFFD[2Jgone\nlog of Pod p, container c:\none\ntwo\n"; text.String() != want {
		t.Errorf("got %q, want %q", text.String(), want)
	}
}

func TestAnInterruptedTest(t *testing.T) {
	t.Parallel()
	one := inspect.ChartTest{Object: object.Key{GroupKind: schema.GroupKind{Kind: "Pod"}, Namespace: "ns", Name: "t"}}
	if got, want := interruptedAt(one, context.Canceled).Error(), `interrupted: Pod "t" in namespace "ns" stays, if it was created`; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
