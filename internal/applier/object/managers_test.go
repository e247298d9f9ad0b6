package object

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestFieldManagersOfAChange(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		kind, wanted, live string
		managers           map[string]string // their fields
		want               []string
	}{
		"who set the field": {
			kind: configMapKind, wanted: "data: {a: x}", live: "data: {a: y}",
			managers: map[string]string{"rival": `{"f:data":{"f:a":{}}}`},
			want:     []string{"rival"},
		},
		"several": {
			kind: configMapKind, wanted: "data: {a: x, b: x}", live: "data: {a: y, b: y}",
			managers: map[string]string{"two": `{"f:data":{"f:a":{}}}`, "one": `{"f:data":{"f:b":{}}}`},
			want:     []string{"one", "two"},
		},
		"who set another field": {
			kind: configMapKind, wanted: "data: {a: x}", live: "data: {a: y, b: y}",
			managers: map[string]string{"other": `{"f:data":{".":{},"f:b":{}},"f:metadata":{"f:labels":{"f:l":{}}}}`},
		},
		"ourselves": {
			kind: configMapKind, wanted: "data: {a: x}", live: "data: {a: y}",
			managers: map[string]string{FieldManager: `{"f:data":{"f:a":{}}}`},
		},
		"field that is missing": {
			kind: configMapKind, wanted: "data: {a: x}", live: "data: {b: y}",
			managers: map[string]string{"other": `{"f:data":{"f:b":{}}}`},
		},
		"item of a list": {
			kind:   webhookKind,
			wanted: "webhooks: [{name: v, timeoutSeconds: 1}, {name: w, timeoutSeconds: 1}]",
			live:   "webhooks: [{name: v, timeoutSeconds: 1}, {name: w, timeoutSeconds: 2}]",
			managers: map[string]string{
				"rival": `{"f:webhooks":{"k:{\"name\":\"w\"}":{"f:timeoutSeconds":{}}}}`,
				"other": `{"f:webhooks":{".":{},"k:{\"name\":\"v\"}":{"f:timeoutSeconds":{}}}}`,
				"third": `{"f:webhooks":{"k:{\"name\":\"w\"}":{".":{},"f:name":{},"f:failurePolicy":{}}}}`,
			},
			want: []string{"rival"},
		},
		"list that is replaced whole": {
			kind: customKind, wanted: "spec: {list: [a]}", live: "spec: {list: [b]}",
			managers: map[string]string{"rival": `{"f:spec":{"f:list":{}}}`},
			want:     []string{"rival"},
		},
		"unreadable": {
			kind: configMapKind, wanted: "data: {a: x}", live: "data: {a: y}",
			managers: map[string]string{"odd": `[]`, "rival": `{"f:data":{"f:a":{}}}`},
			want:     []string{"rival"},
		},
		"nothing to change": {
			kind: configMapKind, wanted: "data: {a: x}", live: "data: {a: x}",
			managers: map[string]string{"rival": `{"f:data":{"f:a":{}}}`},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := ThreeWay{Wanted: parse(t, tc.kind, tc.wanted), Live: parse(t, tc.kind, tc.live)}
			var managed []metav1.ManagedFieldsEntry
			for manager, fields := range tc.managers {
				managed = append(managed, metav1.ManagedFieldsEntry{Manager: manager, FieldsV1: metav1.NewFieldsV1(fields)})
			}
			s.Live.SetManagedFields(managed)
			if diff := cmp.Diff(tc.want, s.difference(t).Managers); diff != "" {
				t.Errorf("field managers (-want +got):\n%s", diff)
			}
		})
	}
}
