package storeddata_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterextensions/operator-controller/internal/preflight/storeddata"
	"github.com/clusterextensions/operator-controller/internal/testkit"
	"github.com/clusterextensions/operator-controller/internal/turn"
)

// large serves objects whose spec is one text or list of so many bytes. They are
// written as they are read.
type large struct {
	sizes []int // bytes of objects
	fill  string
	peak  uint64 // heap in bytes, as far as it was looked at

	limits []int64
}

func (l *large) List(_ context.Context, options metav1.ListOptions) (io.ReadCloser, error) {
	l.limits = append(l.limits, options.Limit)
	from, _ := strconv.Atoi(options.Continue)
	to := min(from+int(options.Limit), len(l.sizes))
	reader, writer := io.Pipe()
	go func() {
		_, err := io.WriteString(writer, `{"items":[`)
		for i := from; i < to && err == nil; i++ {
			err = l.write(writer, i, i > from)
		}
		next := ""
		if to < len(l.sizes) {
			next = strconv.Itoa(to)
		}
		_, _ = fmt.Fprintf(writer, `],"metadata":{"continue":%q}}`, next)
		_ = writer.CloseWithError(err)
	}()
	return reader, nil
}

func (l *large) write(to io.Writer, i int, more bool) error {
	if i%8 == 0 {
		var stats runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&stats)
		l.peak = max(l.peak, stats.HeapAlloc)
	}
	if more {
		_, _ = io.WriteString(to, ",")
	}
	_, _ = fmt.Fprintf(to, `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w%04d","namespace":"default"},"spec":`, i)
	head, tail := `{"a":"`, `"}`
	if l.fill != "x" {
		head, tail = `{"a":[0`, `]}`
	}
	if _, err := io.WriteString(to, head); err != nil {
		return err
	}
	block := strings.Repeat(l.fill, 1<<10)
	for left := l.sizes[i]; left > 0; left -= len(block) {
		if _, err := io.WriteString(to, block[:min(left/len(l.fill)*len(l.fill), len(block))]); err != nil {
			return err
		}
	}
	_, err := io.WriteString(to, tail+"}")
	return err
}

// anythingUntilNow is a change that all objects have to be looked at for, and that none
// of those here breaks.
func anythingUntilNow(t *testing.T) *storeddata.Validator {
	t.Helper()
	return validator(t, widgets(t, anything), widgets(t, anything+"\nproperties: {size: {type: integer, maximum: 3}}"))
}

// TestLargeObjectsCostOneAtATime: a tenant who stores as much as they can delays an
// upgrade, and takes no memory for it.
func TestLargeObjectsCostOneAtATime(t *testing.T) { //nolint:paralleltest // it measures memory
	testkit.WithoutRace(t)
	const mebibyte = 1 << 20
	tests := map[string]struct {
		reason string
		stored large
		limits []int64
		peak   uint64 // bytes over what there was before
	}{
		"text": {
			stored: large{sizes: slices.Repeat([]int{mebibyte}, 40), fill: "x"},
			limits: []int64{20, 7, 7, 7},
			peak:   40 * mebibyte,
		},
		"empty lists": {
			reason: "each takes many times what it has as JSON",
			stored: large{sizes: slices.Repeat([]int{mebibyte}, 12), fill: ",[]"},
			limits: []int64{20},
			peak:   160 * mebibyte,
		},
		"large ones after small ones": {
			reason: "a page of 500 is made up before it is known how large it is",
			stored: large{sizes: append(slices.Repeat([]int{10}, 20), slices.Repeat([]int{mebibyte}, 60)...), fill: "x"},
			limits: []int64{20, 500},
			peak:   40 * mebibyte,
		},
	}
	for name, tc := range tests { //nolint:paralleltest // see above
		t.Run(name, func(t *testing.T) {
			var before runtime.MemStats
			v := anythingUntilNow(t)
			runtime.GC()
			runtime.ReadMemStats(&before)
			report, err := storeddata.Scan(t.Context(), &tc.stored, v)
			if err != nil || report.Objects != len(tc.stored.sizes) || report.Affected != 0 || !report.Complete() {
				t.Errorf("report = %+v, %v", report, err)
			}
			if diff := cmp.Diff(tc.limits, tc.stored.limits); diff != "" {
				t.Errorf("limits of pages (-want +got): %s\n%s", tc.reason, diff)
			}
			if peak := tc.stored.peak - min(tc.stored.peak, before.HeapAlloc); peak > tc.peak {
				t.Errorf("%d MiB are held at a time, at most %d are right: %s", peak/mebibyte, tc.peak/mebibyte, tc.reason)
			}
		})
	}
}

func TestScanEndsWhereThereIsTooMuch(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		sizes   []int
		objects int
		want    string
	}{
		"as much as is read": {sizes: []int{8000, 8000, 8000}, objects: 3},
		"an object is too large": {
			sizes: []int{10, 10, 20_000, 10}, objects: 2,
			want: "one of widgets.example.com has more than 10000 bytes, and neither it nor any after it was read",
		},
		"all together are": {
			sizes: slices.Repeat([]int{1000}, 100), objects: 26,
			want: "widgets.example.com have more than 30000 bytes, and none after the first 26 was read",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			report, err := storeddata.ScanWithin(t.Context(), 10_000, 30_000, 30_000, &large{sizes: tc.sizes, fill: "x"}, anythingUntilNow(t))
			if err != nil {
				t.Fatal(err)
			}
			want := storeddata.Report{Objects: tc.objects}
			if tc.want != "" {
				want.Gaps = []storeddata.Gap{{Reason: storeddata.Unjudged, Detail: tc.want}}
			}
			if diff := cmp.Diff(want, report); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestLargeScansTakeTurns: small ones go on beside them, and with its turn a large one
// reads all.
func TestLargeScansTakeTurns(t *testing.T) {
	t.Parallel()
	turns := turn.New(1, func(string) {})
	first, end := turns.Begin(t.Context(), "first", "a")
	second, endSecond := turns.Begin(t.Context(), "second", "b")
	defer endSecond()
	scan := func(ctx context.Context, objects int) (storeddata.Report, error) {
		sizes := slices.Repeat([]int{1000}, objects)
		return storeddata.ScanWithin(ctx, 10_000, 1_000_000, 15_000, &large{sizes: sizes, fill: "x"}, anythingUntilNow(t))
	}
	for _, ctx := range []context.Context{first, t.Context()} { // who takes no turns is not held up
		if report, err := scan(ctx, 50); err != nil || report.Objects != 50 {
			t.Errorf("with its turn: %+v, %v", report, err)
		}
	}
	if report, err := scan(second, 15); err != nil || report.Objects != 15 {
		t.Errorf("a small one: %+v, %v", report, err)
	}
	if _, err := scan(second, 50); !errors.Is(err, turn.ErrWait) {
		t.Errorf("beside another large one: %v", err)
	}
	end()
	if report, err := scan(second, 50); err != nil || report.Objects != 50 {
		t.Errorf("after it: %+v, %v", report, err)
	}
}

// answer is a page that is not as the API server writes it.
type answer string

func (a answer) List(context.Context, metav1.ListOptions) (io.ReadCloser, error) {
	return io.NopCloser(strings.NewReader(string(a))), nil
}

func TestPagesThatAreNone(t *testing.T) {
	t.Parallel()
	const good = `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w"},"spec":{}}`
	tests := map[string]struct {
		page    answer
		objects int
		gap     string
	}{
		"empty":                 {page: `{"items":[],"metadata":{}}`},
		"no items":              {page: `{"items":null}`},
		"other fields":          {page: `{"a":{"items":[1]},"items":[` + good + `],"b":[[]]}`, objects: 1},
		"nothing":               {page: "", gap: "cannot list widgets.example.com: unexpected EOF"},
		"cut":                   {page: `{"items":[` + good, objects: 1, gap: "cannot list widgets.example.com: unexpected EOF"},
		"a list":                {page: `[]`, gap: "cannot list widgets.example.com: the list has [ in the place of {"},
		"items of another kind": {page: `{"items":{}}`, gap: "cannot list widgets.example.com: the items are { and no list"},
		"an item without kind": {
			page: `{"items":[{"a":1}]}`, objects: 1,
			gap: `an object cannot be read: Object 'Kind' is missing in '{"a":1}'`,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			report, err := storeddata.Scan(t.Context(), tc.page, anythingUntilNow(t))
			if err != nil {
				t.Fatal(err)
			}
			var gaps []string
			for _, gap := range report.Gaps {
				gaps = append(gaps, gap.Detail)
			}
			if got := strings.Join(gaps, "; "); report.Objects != tc.objects || got != tc.gap {
				t.Errorf("%d objects, gaps %q; want %d, %q", report.Objects, got, tc.objects, tc.gap)
			}
		})
	}
}

// FuzzPage: whatever is in the place of a page, and whatever objects are on it, the
// scan ends, and says of each object what it found or that it could not.
func FuzzPage(f *testing.F) {
	for _, seed := range []string{
		`{"items":[{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w"},"spec":{"a":"abcd","size":5}}],"metadata":{"remainingItemCount":3}}`,
		`{"metadata":{"continue":7},"items":[]}`, `{"items":[1,null,{}]}`, `{"items":[{"kind":"Widget","spec":[]}]}`,
		`{"items":[{"apiVersion":"example.com/v1","kind":"Widget","metadata":7,"spec":{"size":1e400}}]}`, `{"items":`, `[`, ``,
	} {
		f.Add(seed)
	}
	v, err := storeddata.New(f.Context(), widgets(f, anything), widgets(f, strings.Join([]string{
		"type: object", "properties:", "  size: {type: integer, maximum: 3}", "  a: {type: string, maxLength: 3}",
		"  l: {type: array, x-kubernetes-list-type: set, items: {type: string}}",
		"  o: {type: object, x-kubernetes-embedded-resource: true, properties: {b: {type: string, default: c}}}",
		"x-kubernetes-validations: [{rule: '!has(self.size) || self.size > 1'}]",
	}, "\n")))
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, page string) {
		if strings.Contains(page, "continue") {
			return // each page would be the same, and the next one too
		}
		report, err := storeddata.Scan(t.Context(), answer(page), v)
		if err != nil || report.Affected+report.Unknown > report.Objects || len(report.Offenders) > 10 {
			t.Errorf("report = %+v, %v", report, err)
		}
		for _, offender := range report.Offenders {
			for _, problem := range offender.Problems {
				if strings.ContainsAny(problem.String(), "\n\r") {
					t.Errorf("a problem has more than a line: %q", problem)
				}
			}
		}
		if _, err := storeddata.Inventory(t.Context(), answer(page), widgetsResource); err != nil {
			t.Error(err)
		}
	})
}
