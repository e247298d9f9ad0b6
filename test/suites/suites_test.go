package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestChoose(t *testing.T) {
	t.Parallel()
	from := []suite{{name: "short"}, {name: "long", onlyFull: "takes half an hour"}}
	for name, test := range map[string]struct {
		scale string
		names []string
		want  string
		fails bool
	}{
		"all at full scale":       {scale: scaleFull, want: "[short long]"},
		"for each change":         {scale: scaleCI, want: "[short]"},
		"a long one for a change": {scale: scaleCI, names: []string{"long"}, want: "[long]"},
		"unknown name":            {scale: scaleCI, names: []string{"other"}, want: "[]", fails: true},
		"unknown scale":           {scale: "week", want: "[]", fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			chosen, err := choose(from, test.scale, test.names)
			if got := fmt.Sprint(namesOf(chosen)); got != test.want || (err != nil) != test.fails {
				t.Errorf("got %s and error %v, want %s", got, err, test.want)
			}
		})
	}
}

// Each test is in exactly one shard, and slow tests are spread.
func TestSplit(t *testing.T) {
	t.Parallel()
	s := suite{name: "s", shards: 3, skip: "TestSkipped"}
	tests := []string{"TestSkipped", "TestAPIServerAway", "TestRollingRestart", "TestBadAPIServer"}
	want := []string{"TestAPIServerAway", "TestRollingRestart", "TestBadAPIServer"}
	for i := range 30 {
		name := fmt.Sprintf("Test%d", i)
		tests, want = append(tests, name), append(want, name)
	}
	shards, err := s.split(tests, "")
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, shard := range shards {
		slowOnes := slices.DeleteFunc(slices.Clone(shard), func(name string) bool { return slow[name] == 0 })
		if len(slowOnes) != 1 {
			t.Errorf("one shard has the slow tests %v", slowOnes)
		}
		all = append(all, shard...)
	}
	slices.Sort(all)
	slices.Sort(want)
	if !slices.Equal(all, want) {
		t.Errorf("got the tests %v, want %v", all, want)
	}
}

// -test.run chooses tests of a suite, whether it has shards and patterns of its own or not.
func TestRunChoosesTestsOfASuite(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	source := "package p\n\nfunc TestA(t *testing.T) {}\n\nfunc TestAB(t *testing.T) {}\n\nfunc TestC(t *testing.T) {}\n"
	if err := os.WriteFile(filepath.Join(folder, "p_test.go"), []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		suite suite
		flags []string
		want  []string
	}{
		"no flag":               {suite{run: "TestA"}, []string{"-x"}, []string{"-x -test.run=TestA"}},
		"one process":           {suite{run: "TestA"}, []string{"-test.run=B|C", "-x"}, []string{"-x -test.run=^(TestAB)$"}},
		"shards":                {suite{shards: 2}, []string{"-test.run=TestA"}, []string{"-test.run=^(TestA)$", "-test.run=^(TestAB)$"}},
		"a subtest":             {suite{shards: 2}, []string{"-test.run=TestC/one/two"}, []string{"-test.run=^(TestC)$/one/two"}},
		"none of it is in here": {suite{skip: "TestC"}, []string{"-test.run=TestC"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			jobs, err := test.suite.jobs(folder, "p.test", test.flags)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, j := range jobs {
				got = append(got, strings.Join(j.args, " "))
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("got the flags %q, want %q", got, test.want)
			}
		})
	}
}

// Every test of a package with several suites is in one of them.
func TestSuitesOfAPackageLeaveNoTestOut(t *testing.T) {
	t.Parallel()
	for _, pkg := range []string{"e2e", "classic"} {
		for _, test := range []string{"TestSampleOperator", "TestRandomDeletions", "TestKilledLive", "TestCorpus", "TestMoveLive"} {
			var in []string
			for _, s := range suites {
				if s.pkg != pkg || (s.run != "" && !regexp.MustCompile(s.run).MatchString(test)) {
					continue
				}
				if s.skip == "" || !regexp.MustCompile(s.skip).MatchString(test) {
					in = append(in, s.name)
				}
			}
			if len(in) != 1 {
				t.Errorf("%s of %s is in the suites %v, want one", test, pkg, in)
			}
		}
	}
}

const events = `{"Action":"run","Test":"TestA"}
{"Action":"output","Test":"TestA","Output":"    a_test.go:1: want 1\n"}
{"Action":"fail","Test":"TestA","Elapsed":2.5}
{"Action":"output","Test":"TestB","Output":"=== RUN   TestB\n"}
{"Action":"output","Test":"TestB","Output":"    b_test.go:1: needs root\n"}
{"Action":"skip","Test":"TestB","Elapsed":0}
{"Action":"output","Test":"TestC","Output":"panic: oh\n"}
{"Action":"pass","Test":"TestD","Elapsed":1}
not JSON
{"Action":"output","Output":"FAIL\n"}
`

func TestReport(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	r, err := newReport(&out, "")
	if err != nil {
		t.Fatal(err)
	}
	of := r.read(strings.NewReader(events))
	of.err, of.took = errors.New("exit status 1"), time.Minute
	r.add(job{name: "e2e 1/2"}, of)
	if err := r.finish(time.Minute); !errors.Is(err, errFailed) {
		t.Errorf("got error %v, want %v", err, errFailed)
	}
	for _, want := range []string{
		"FAIL e2e 1/2", "1 passed, 2 failed, 1 skipped", "a_test.go:1: want 1", "panic: oh", "2.5 s  TestA", "e2e 1/2 TestB: b_test.go:1: needs root",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the report does not contain %q:\n%s", want, out.String())
		}
	}
}

// Programs are built before the first job starts. A target that cannot be built leaves out the jobs
// that need it, and no others.
func TestJobsStartAfterTheirProgramsAreBuilt(t *testing.T) {
	t.Parallel()
	jobs := []job{
		{name: "broken", suite: suite{needs: []string{"cluster", "classic"}}},
		{name: "long", suite: suite{needs: []string{"cluster", "node"}}},
		{name: "short", suite: suite{needs: []string{"cluster"}}},
	}
	var steps []string
	failure := errors.New("failure")
	n := &needs{build: func(_ context.Context, _ io.Writer, targets ...string) error {
		steps = append(steps, targets...)
		if targets[0] == "classic" {
			return failure
		}
		return nil
	}}
	var out bytes.Buffer
	r, err := newReport(&out, "")
	if err != nil {
		t.Fatal(err)
	}
	runAll(t.Context(), t.Context(), jobs, n, 1, r, func(_ context.Context, j job) result {
		steps = append(steps, j.name)
		return result{}
	})
	if want := []string{"cluster", "classic", "node", "long", "short"}; !slices.Equal(steps, want) {
		t.Errorf("got the steps %q, want %q", steps, want)
	}
	if err := r.finish(time.Minute); !errors.Is(err, failure) || !strings.Contains(out.String(), "Left out: broken\n") {
		t.Errorf("got error %v and the report\n%s", err, out.String())
	}
}

// A job that does not start in time is named, and the run fails.
func TestJobsAreLeftOutForWantOfTime(t *testing.T) {
	t.Parallel()
	over, cancel := context.WithTimeout(t.Context(), time.Nanosecond)
	defer cancel()
	<-over.Done()
	var out bytes.Buffer
	r, err := newReport(&out, "")
	if err != nil {
		t.Fatal(err)
	}
	runAll(t.Context(), over, []job{{name: "late"}}, newNeeds(io.Discard), 1, r, nil)
	if err := r.finish(time.Minute); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(out.String(), "Left out: late") {
		t.Errorf("got error %v and the report\n%s", err, out.String())
	}
}
