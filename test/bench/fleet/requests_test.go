package main

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/clusterextensions/operator-controller/test/environment"
)

func TestFirstWriteFor(t *testing.T) {
	t.Parallel()

	const (
		read      = `{"verb":"get","objectRef":{"resource":"clusterextensions","name":"mine"},"stageTimestamp":"2026-01-01T00:00:01Z"}`
		others    = `{"verb":"create","objectRef":{"resource":"configmaps","namespace":"other","name":"settings"},"stageTimestamp":"2026-01-01T00:00:02Z"}`
		refused   = `{"verb":"patch","objectRef":{"resource":"clusterextensions","name":"mine"},"responseStatus":{"code":409},"stageTimestamp":"2026-01-01T00:00:03Z"}`
		dryRun    = `{"verb":"create","requestURI":"/api/v1/namespaces/mine/services?dryRun=All","objectRef":{"resource":"services","namespace":"mine"},"stageTimestamp":"2026-01-01T00:00:04Z"}`
		longer    = `{"verb":"create","objectRef":{"resource":"secrets","namespace":"olmv1-system","name":"sh.helm.release.v1.mine-too.v1"},"stageTimestamp":"2026-01-01T00:00:05Z"}`
		finalizer = `{"verb":"patch","objectRef":{"resource":"clusterextensions","name":"mine"},"stageTimestamp":"2026-01-01T00:00:06Z"}`
		record    = `{"verb":"create","objectRef":{"resource":"secrets","namespace":"olmv1-system","name":"sh.helm.release.v1.mine.v1"},"stageTimestamp":"2026-01-01T00:00:07Z"}`
		content   = `{"verb":"create","objectRef":{"resource":"services","namespace":"mine","name":"web"},"stageTimestamp":"2026-01-01T00:00:08Z"}`
	)
	tests := map[string]struct {
		lines []string
		want  int // second; none if zero
	}{
		"none":               {lines: []string{read, others, refused, dryRun, longer}},
		"a finalizer":        {lines: []string{read, finalizer, record, content}, want: 6},
		"a record":           {lines: []string{longer, record, content}, want: 7},
		"content":            {lines: []string{dryRun, content}, want: 8},
		"not the first line": {lines: []string{content, finalizer}, want: 6},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			requests := make([]environment.Request, len(tc.lines))
			for i, line := range tc.lines {
				if err := json.Unmarshal([]byte(line), &requests[i]); err != nil {
					t.Fatal(err)
				}
			}
			got, ok := firstWriteFor(requests, "mine")
			want := time.Date(2026, 1, 1, 0, 0, tc.want, 0, time.UTC)
			if ok != (tc.want > 0) || ok && !got.Equal(want) {
				t.Errorf("first write was at %v, %v, want %v", got, ok, want)
			}
		})
	}
}
