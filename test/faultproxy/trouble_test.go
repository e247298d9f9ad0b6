package faultproxy_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/clusterextensions/operator-controller/test/faultproxy"
)

// until polls for what another goroutine brings about.
func until(t *testing.T, holds func() bool) {
	t.Helper()
	for !holds() {
		select {
		case <-t.Context().Done():
			t.Fatal("the test ended first")
		case <-time.After(time.Millisecond):
		}
	}
}

func TestFreeze(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		point faultproxy.Point
		want  []string // what of three writes happens
	}{
		"before the second": {point: faultproxy.Point{Write: 2}, want: []string{"PUT /frozen/1 "}},
		"after the second":  {point: faultproxy.Point{Write: 2, Answered: true}, want: []string{"PUT /frozen/1 ", "PUT /frozen/2 "}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			proxy, behind, config, client := start(t, ok)
			freeze := faultproxy.NewFreeze(map[string]faultproxy.Point{"frozen": tc.point}, func(w faultproxy.Write) string {
				return strings.Split(w.Path, "/")[1]
			})
			proxy.Use(freeze.Wrap)
			ctx, die := context.WithCancel(t.Context())
			if _, err := send(ctx, client, http.MethodPut, config.Host+"/frozen/1", ""); err != nil {
				t.Fatal(err)
			}
			ended := make(chan error)
			go func() {
				_, err := send(ctx, client, http.MethodPut, config.Host+"/frozen/2", "")
				ended <- err
			}()
			until(t, func() bool { return freeze.Stopped()["frozen"].Path == "/frozen/2" })
			go func() {
				_, err := send(ctx, client, http.MethodPut, config.Host+"/frozen/3", "")
				ended <- err
			}()
			until(t, func() bool { return freeze.Longest() == 3 })
			if diff := cmp.Diff(tc.want, behind.requests()); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
			for _, other := range []string{"/other/1", "/other/2", "/other/3"} {
				if status, err := send(ctx, client, http.MethodPut, config.Host+other, ""); err != nil || status != http.StatusCreated {
					t.Errorf("%s: status %d, error %v", other, status, err)
				}
			}
			die()
			for range 2 {
				if err := <-ended; err == nil {
					t.Error("a frozen write was answered")
				}
			}
		})
	}
}

func TestJournalHasWhatWasDoneWhateverTheAnswer(t *testing.T) {
	t.Parallel()
	proxy, _, config, client := start(t, func(w http.ResponseWriter, req *http.Request) {
		if strings.HasPrefix(req.URL.Path, "/refused/") {
			w.WriteHeader(http.StatusConflict)
		}
	})
	journal := &faultproxy.Journal{}
	freeze := faultproxy.NewFreeze(map[string]faultproxy.Point{"/lost/1": {Write: 1, Answered: true}},
		func(w faultproxy.Write) string { return w.Path })
	proxy.Use(journal.Wrap)
	proxy.Use(freeze.Wrap)
	for _, path := range []string{"/done/1", "/refused/1"} {
		if _, err := send(t.Context(), client, http.MethodPut, config.Host+path, ""); err != nil {
			t.Fatal(err)
		}
	}
	ctx, die := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() {
		_, err := send(ctx, client, http.MethodPut, config.Host+"/lost/1", "")
		ended <- err
	}()
	until(t, func() bool { return len(freeze.Stopped()) == 1 })
	die()
	<-ended
	want := []faultproxy.Write{{Method: http.MethodPut, Path: "/done/1"}, {Method: http.MethodPut, Path: "/lost/1"}}
	if diff := cmp.Diff(want, journal.Accepted()); diff != "" {
		t.Errorf("journal (-want +got):\n%s", diff)
	}
}

func TestFaultsFollowFromTheSeed(t *testing.T) {
	t.Parallel()
	fates := func(seed uint64) []string {
		proxy, behind, config, client := start(t, ok)
		faults := &faultproxy.Faults{Seed: seed, Share: 0.5, Spare: func(req *http.Request) bool {
			return strings.HasPrefix(req.URL.Path, "/spared/")
		}}
		proxy.Use(faults.Wrap)
		var fates []string
		for i := range 200 {
			spared, err := send(t.Context(), client, http.MethodPut, config.Host+fmt.Sprintf("/spared/%d", i), "")
			if err != nil || spared != http.StatusCreated {
				t.Errorf("a spared request: status %d, error %v", spared, err)
			}
			before := len(behind.requests())
			status, err := send(t.Context(), client, http.MethodPut, config.Host+fmt.Sprintf("/spoilt/%d", i%3), "")
			fates = append(fates, fmt.Sprintf("%d %t, %d deeds", status, err != nil, len(behind.requests())-before))
		}
		for name, count := range faults.Injected() {
			if count == 0 {
				t.Errorf("no request met %q", name)
			}
		}
		return fates
	}
	first := fates(1)
	if diff := cmp.Diff(first, fates(1)); diff != "" {
		t.Errorf("the same seed gives other faults (-first +second):\n%s", diff)
	}
	if slices.Equal(first, fates(2)) {
		t.Error("another seed gives the same faults")
	}
}
