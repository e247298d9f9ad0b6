package storeddata_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterextensions/operator-controller/internal/preflight/storeddata"
)

// pages serves objects as the API server does: by a limit and a token.
type pages struct {
	objects []*unstructured.Unstructured
	limits  []int64
	// fail, if set, is asked before each page.
	fail func(request int) error
	// countless is an API server that does not say how many are left.
	countless bool
}

func (p *pages) List(_ context.Context, options metav1.ListOptions) (io.ReadCloser, error) {
	p.limits = append(p.limits, options.Limit)
	if p.fail != nil {
		if err := p.fail(len(p.limits)); err != nil {
			return nil, err
		}
	}
	from, _ := strconv.Atoi(options.Continue)
	to := min(from+int(options.Limit), len(p.objects))
	list := &unstructured.UnstructuredList{}
	for _, object := range p.objects[from:to] {
		list.Items = append(list.Items, *object)
	}
	if left := len(p.objects) - to; left > 0 {
		list.SetContinue(strconv.Itoa(to))
		if !p.countless {
			list.SetRemainingItemCount(new(int64(left)))
		}
	}
	data, err := list.MarshalJSON()
	return io.NopCloser(bytes.NewReader(data)), err
}

// widgetsOfSize makes objects, the last of which comes first by name.
func widgetsOfSize(t *testing.T, sizes ...int) *pages {
	t.Helper()
	p := &pages{}
	for i, size := range sizes {
		p.objects = append(p.objects, widget(t, fmt.Sprintf("w%04d", len(sizes)-i), fmt.Sprintf("size: %d", size)))
	}
	return p
}

func atMostThree(t *testing.T) *storeddata.Validator {
	t.Helper()
	return validator(t, widgets(t, "{type: object, properties: {size: {type: integer}}}"),
		widgets(t, "{type: object, properties: {size: {type: integer, maximum: 3}}}"))
}

var widgetsResource = schema.GroupResource{Group: "example.com", Resource: "widgets"}

func TestScan(t *testing.T) {
	t.Parallel()
	tooLarge := []storeddata.Problem{{
		Kind: storeddata.Invalid, Path: "spec.size", Detail: "Invalid value: spec.size in body should be less than or equal to 3",
	}}
	for name, tc := range map[string]struct {
		sizes []int
		want  storeddata.Report
	}{
		"no objects": {},
		"all are valid": {
			sizes: []int{1, 2, 3},
			want:  storeddata.Report{Objects: 3},
		},
		"some are not": {
			sizes: []int{4, 1, 5},
			want: storeddata.Report{Objects: 3, Affected: 2, Offenders: []storeddata.Offender{
				{Namespace: "default", Name: "w0001", Problems: tooLarge, Total: 1},
				{Namespace: "default", Name: "w0003", Problems: tooLarge, Total: 1},
			}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			report, err := storeddata.Scan(t.Context(), widgetsOfSize(t, tc.sizes...), atMostThree(t))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, report); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Of many affected objects the first by name are reported, on whichever page they
// are.
func TestScanIsBounded(t *testing.T) {
	t.Parallel()
	lister := widgetsOfSize(t, make([]int, 1200)...)
	for _, object := range lister.objects {
		object.Object["spec"] = map[string]any{"size": int64(9)}
	}
	report, err := storeddata.Scan(t.Context(), lister, atMostThree(t))
	if err != nil {
		t.Fatal(err)
	}
	if report.Objects != 1200 || report.Affected != 1200 || !report.Complete() {
		t.Errorf("got %+v", report)
	}
	if diff := cmp.Diff([]int64{20, 500, 500, 500}, lister.limits); diff != "" {
		t.Error("limits of pages:", diff)
	}
	var names []string
	for _, offender := range report.Offenders {
		names = append(names, offender.Name)
	}
	want := []string{"w0001", "w0002", "w0003", "w0004", "w0005", "w0006", "w0007", "w0008", "w0009", "w0010"}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Error(diff)
	}
}

func TestProblemsOfAnObjectAreBounded(t *testing.T) {
	t.Parallel()
	v := validator(t, widgets(t, "{type: object, properties: {a: {type: array, items: {type: string}}}}"),
		widgets(t, "{type: object, properties: {a: {type: array, items: {type: integer}}}}"))
	lister := &pages{objects: []*unstructured.Unstructured{widget(t, "w", "a: ["+strings.Repeat("x, ", 11)+"x]")}}
	report, err := storeddata.Scan(t.Context(), lister, v)
	if err != nil {
		t.Fatal(err)
	}
	if offender := report.Offenders[0]; len(offender.Problems) != 10 || offender.Total != 12 {
		t.Errorf("got %d of %d problems", len(offender.Problems), offender.Total)
	}
}

func TestScanOfWhatAWebhookConverts(t *testing.T) {
	t.Parallel()
	old := versions{"served stored v1beta1": "a: {type: string}"}
	updated := versions{"v1beta1": "a: {type: string}", "served stored v1": "a: {type: string}"}
	v := validator(t, old.crd(t, "None"), updated.crd(t, "Webhook"))
	lister := widgetsOfSize(t, 1, 2)
	for _, object := range lister.objects {
		object.SetAPIVersion("example.com/v1beta1")
	}
	report, err := storeddata.Scan(t.Context(), lister, v)
	if err != nil {
		t.Fatal(err)
	}
	want := storeddata.Report{Objects: 2, Unknown: 2, Gaps: []storeddata.Gap{{
		Reason: storeddata.Unjudged,
		Detail: "version v1beta1 would not be served, and a webhook would convert its objects to v1",
	}}}
	if diff := cmp.Diff(want, report); diff != "" {
		t.Error(diff)
	}
}

func TestScanThatCannotRead(t *testing.T) {
	t.Parallel()
	expired := apierrors.NewResourceExpired("the token is too old")
	for name, tc := range map[string]struct {
		fail     func(request int) error
		want     storeddata.Report
		requests int
	}{
		"forbidden": {
			fail: func(int) error { return apierrors.NewForbidden(widgetsResource, "", errors.New("no")) },
			want: storeddata.Report{Gaps: []storeddata.Gap{{
				Reason: storeddata.Forbidden, Detail: `needs the right to list "widgets" of API group "example.com" in all namespaces`,
			}}},
			requests: 1,
		},
		"broken on the second page": {
			fail: func(request int) error {
				if request == 2 {
					return errors.New("connection\nlost")
				}
				return nil
			},
			want: storeddata.Report{Objects: 20, Gaps: []storeddata.Gap{{
				Reason: storeddata.Unavailable, Detail: "cannot list widgets.example.com: connection lost",
			}}},
			requests: 2,
		},
		"expired once": {
			fail: func(request int) error {
				if request == 2 {
					return expired
				}
				return nil
			},
			want:     storeddata.Report{Objects: 600},
			requests: 5,
		},
		"gone once": {
			fail: func(request int) error {
				if request == 2 {
					return apierrors.NewGenericServerResponse(http.StatusGone, "list", widgetsResource, "", "gone", 0, false)
				}
				return nil
			},
			want:     storeddata.Report{Objects: 600},
			requests: 5,
		},
		"expired each time": {
			fail: func(request int) error {
				if request%2 == 0 {
					return expired
				}
				return nil
			},
			want: storeddata.Report{Objects: 20, Gaps: []storeddata.Gap{{
				Reason: storeddata.Unavailable, Detail: "cannot list widgets.example.com: the token is too old",
			}}},
			requests: 6,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			lister := widgetsOfSize(t, make([]int, 600)...)
			lister.fail = tc.fail
			report, err := storeddata.Scan(t.Context(), lister, atMostThree(t))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, report); diff != "" {
				t.Error(diff)
			}
			if report.Complete() != (len(tc.want.Gaps) == 0) {
				t.Error("complete:", report.Complete())
			}
			if len(lister.limits) != tc.requests {
				t.Errorf("%d requests, want %d", len(lister.limits), tc.requests)
			}
		})
	}
}

func TestScanIsCancelled(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	lister := widgetsOfSize(t, make([]int, 600)...)
	lister.fail = func(request int) error {
		if request == 2 {
			cancel()
		}
		return nil
	}
	report, err := storeddata.Scan(ctx, lister, atMostThree(t))
	if !errors.Is(err, context.Canceled) || report.Objects != 20 {
		t.Errorf("got %+v, %v", report, err)
	}
}

func TestInventory(t *testing.T) {
	t.Parallel()
	offender := func(name string) storeddata.Offender {
		return storeddata.Offender{
			Namespace: "default", Name: name, Total: 1,
			Problems: []storeddata.Problem{{Kind: storeddata.Deleted, Detail: "object would be deleted"}},
		}
	}
	for name, tc := range map[string]struct {
		objects   int
		countless bool
		fail      error
		want      storeddata.Report
		named     int
	}{
		"none": {},
		"some": {
			objects: 2,
			want:    storeddata.Report{Objects: 2, Affected: 2, Offenders: []storeddata.Offender{offender("w0001"), offender("w0002")}},
			named:   2,
		},
		"many": {
			objects: 2000,
			want:    storeddata.Report{Objects: 2000, Affected: 2000},
			named:   10,
		},
		"uncounted": {
			objects: 2000, countless: true,
			want: storeddata.Report{Objects: 10, Affected: 10, Gaps: []storeddata.Gap{{
				Reason: storeddata.Unavailable, Detail: "there are more objects, but the API server does not say how many",
			}}},
			named: 10,
		},
		"unreadable": {
			fail: apierrors.NewNotFound(widgetsResource, ""),
			want: storeddata.Report{Gaps: []storeddata.Gap{{
				Reason: storeddata.Unavailable, Detail: `cannot list widgets.example.com: widgets.example.com "" not found`,
			}}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			lister := widgetsOfSize(t, make([]int, tc.objects)...)
			lister.countless = tc.countless
			lister.fail = func(int) error { return tc.fail }
			report, err := storeddata.Inventory(t.Context(), lister, widgetsResource)
			if err != nil {
				t.Fatal(err)
			}
			if len(report.Offenders) != tc.named {
				t.Errorf("%d objects are named, want %d", len(report.Offenders), tc.named)
			}
			if tc.want.Offenders == nil {
				report.Offenders = nil
			}
			if diff := cmp.Diff(tc.want, report); diff != "" {
				t.Error(diff)
			}
			if len(lister.limits) != 1 {
				t.Errorf("%d requests, want 1", len(lister.limits))
			}
		})
	}
}

func TestInventoryIsCancelled(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := storeddata.Inventory(ctx, widgetsOfSize(t, 1), widgetsResource); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
