package measure_test

import (
	"os"
	"strings"
	"testing"

	"github.com/clusterextensions/operator-controller/test/bench/measure"
)

func TestUsageOfThisProcess(t *testing.T) {
	t.Parallel()

	used, err := measure.Of(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if used.AnonymousBytes <= 0 || used.FileBytes <= 0 || used.PeakBytes < used.ResidentBytes ||
		used.ResidentBytes < used.AnonymousBytes+used.FileBytes {
		t.Errorf("got %+v, in which the parts do not make the whole", used)
	}
}

func TestCPUTimeGrowsWithWork(t *testing.T) {
	t.Parallel()

	before, err := measure.Of(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	for after := before; after.CPUSeconds == before.CPUSeconds; {
		if after, err = measure.Of(os.Getpid()); err != nil {
			t.Fatal(err)
		}
	}
}

func TestProcessThatIsNotThere(t *testing.T) {
	t.Parallel()

	const none = 1 << 30 // more than the kernel gives out
	if used, err := measure.Of(none); !os.IsNotExist(err) {
		t.Errorf("got %+v, %v", used, err)
	}
}

func TestReport(t *testing.T) {
	t.Parallel()

	tests := map[string]struct {
		report func(*measure.Report) error
		want   string
		over   bool
	}{
		"no limit": {
			report: func(r *measure.Report) error { return r.Tell("b", "m", 2) },
			want:   `{"benchmark":"b","metric":"m","value":2}`,
		},
		"of a number of extensions": {
			report: func(r *measure.Report) error { return r.For(100).Tell("b", "m", 2) },
			want:   `{"benchmark":"b","extensions":100,"metric":"m","value":2}`,
		},
		"at the limit": {
			report: func(r *measure.Report) error { return r.Check("b", "m", 2, 2) },
			want:   `{"benchmark":"b","metric":"m","value":2,"limit":2}`,
		},
		"over the limit, which may be zero": {
			report: func(r *measure.Report) error { return r.Check("b", "m", 1, 0) },
			want:   `{"benchmark":"b","metric":"m","value":1,"limit":0}`,
			over:   true,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			var out strings.Builder
			if err := tc.report(measure.NewReport(&out)); (err != nil) != tc.over {
				t.Errorf("over the limit is %v, want %v", err, tc.over)
			}
			if got := strings.TrimSpace(out.String()); got != tc.want {
				t.Errorf("printed %s, want %s", got, tc.want)
			}
		})
	}
}
