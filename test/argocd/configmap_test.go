package argocd_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"sigs.k8s.io/yaml"
)

// group is how the ConfigMap of Argo CD names the group of both kinds.
const group = "olm.operatorframework.io"

// TestConfigMap has what an Argo CD without these scripts is given be the scripts.
func TestConfigMap(t *testing.T) {
	t.Parallel()
	data := map[string]string{}
	for _, kind := range []string{"ClusterExtension", "ClusterCatalog"} {
		data[fmt.Sprintf("resource.customizations.health.%s_%s", group, kind)] = scriptOf(t, kind, "health.lua")
	}
	type definition struct {
		Name   string `json:"name"`
		Script string `json:"action.lua"`
	}
	for kind, names := range map[string][]string{"ClusterCatalog": {"suspend", "resume"}, "ClusterExtension": {"suspend", "resume", "approve"}} {
		actions := struct {
			Discovery   string       `json:"discovery.lua"`
			Definitions []definition `json:"definitions"`
		}{Discovery: scriptOf(t, kind, "actions/discovery.lua")}
		for _, name := range names {
			actions.Definitions = append(actions.Definitions, definition{Name: name, Script: scriptOf(t, kind, "actions/"+name+"/action.lua")})
		}
		data[fmt.Sprintf("resource.customizations.actions.%s_%s", group, kind)] = string(marshal(t, actions))
	}
	text, err := yaml.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "data": data,
		"metadata": map[string]any{"name": "argocd-cm", "namespace": "argocd", "labels": map[string]any{"app.kubernetes.io/name": "argocd-cm", "app.kubernetes.io/part-of": "argocd"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	compare(t, filepath.Join(folderOf(t, "ClusterCatalog"), "../../../argocd-cm.yaml"), text)
}
