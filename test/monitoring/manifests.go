package monitoring

import (
	"fmt"
	"path/filepath"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"

	"github.com/clusterextensions/operator-controller/internal/testkit"
)

// Manifests are those of config/prometheus for the Prometheus operator.
type Manifests struct {
	Monitor *monitoringv1.ServiceMonitor
	Rules   *monitoringv1.PrometheusRule
}

// ReadManifests builds config/prometheus as kubectl does. A field that the Prometheus
// operator does not know is an error.
func ReadManifests() (Manifests, error) {
	root, err := testkit.ModuleRoot()
	if err != nil {
		return Manifests{}, err
	}
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), filepath.Join(root, "config", "prometheus"))
	if err != nil {
		return Manifests{}, fmt.Errorf("building config/prometheus: %w", err)
	}
	manifests := Manifests{Monitor: &monitoringv1.ServiceMonitor{}, Rules: &monitoringv1.PrometheusRule{}}
	into := map[string]any{monitoringv1.ServiceMonitorsKind: manifests.Monitor, monitoringv1.PrometheusRuleKind: manifests.Rules}
	for _, resource := range built.Resources() {
		object, ok := into[resource.GetKind()]
		if !ok {
			continue
		}
		delete(into, resource.GetKind()) // one of each
		text, err := resource.AsYAML()
		if err != nil {
			return Manifests{}, fmt.Errorf("reading config/prometheus: %w", err)
		}
		if err := yaml.UnmarshalStrict(text, object); err != nil {
			return Manifests{}, fmt.Errorf("reading the %s in config/prometheus: %w", resource.GetKind(), err)
		}
	}
	if len(into) > 0 {
		return Manifests{}, fmt.Errorf("config/prometheus lacks %d of what it is to have", len(into))
	}
	return manifests, nil
}

// RulesFile is the file with the rules for Prometheus itself and for promtool.
func (m Manifests) RulesFile() ([]byte, error) {
	content, err := yaml.Marshal(m.Rules.Spec)
	if err != nil {
		return nil, fmt.Errorf("writing rules: %w", err)
	}
	return content, nil
}

// Alerts are the alerts of all groups, in their order.
func (m Manifests) Alerts() []monitoringv1.Rule {
	var alerts []monitoringv1.Rule
	for _, group := range m.Rules.Spec.Groups {
		alerts = append(alerts, group.Rules...)
	}
	return alerts
}
