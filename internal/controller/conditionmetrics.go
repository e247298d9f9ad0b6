package controller

import (
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
)

// conditionGauges tell of the conditions of all extensions, as a GaugeVec would. They are
// most of the series there are: a GaugeVec takes about 360 bytes for each all the time, and
// these are made when somebody looks.
type conditionGauges struct {
	description *prometheus.Desc
	types       []string

	mu sync.Mutex

	// values are those of the types, in their order, by extension.
	values map[string][]int8
}

func newConditionGauges(name, help string) *conditionGauges {
	return &conditionGauges{
		description: prometheus.NewDesc(prometheus.BuildFQName(metricsNamespace, "", name), help, []string{labelExtension, labelType}, nil),
		types:       slices.Concat(ocv1.ClusterExtensionConditionTypes(), ocv1.ClusterExtensionPassingConditionTypes()),
		values:      map[string][]int8{},
	}
}

// set takes in the conditions of an extension.
func (g *conditionGauges) set(extension string, conditions []metav1.Condition) {
	values := make([]int8, len(g.types))
	for i, kind := range g.types {
		values[i] = valueOf(meta.FindStatusCondition(conditions, kind))
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.values[extension] = values
}

func (g *conditionGauges) Describe(descriptions chan<- *prometheus.Desc) {
	descriptions <- g.description
}

func (g *conditionGauges) Collect(metrics chan<- prometheus.Metric) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for extension, values := range g.values {
		for i, value := range values {
			metrics <- prometheus.MustNewConstMetric(g.description, prometheus.GaugeValue, float64(value), extension, g.types[i])
		}
	}
}

// DeletePartialMatch drops the series of the extension among the labels, and gives their
// number.
func (g *conditionGauges) DeletePartialMatch(labels prometheus.Labels) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	dropped := len(g.values[labels[labelExtension]])
	delete(g.values, labels[labelExtension])
	return dropped
}

func (g *conditionGauges) Reset() {
	g.mu.Lock()
	defer g.mu.Unlock()
	clear(g.values)
}

// valueOf is 1 for True, 0 for False or absent, and -1 for Unknown.
func valueOf(condition *metav1.Condition) int8 {
	switch {
	case condition == nil || condition.Status == metav1.ConditionFalse:
		return 0
	case condition.Status == metav1.ConditionTrue:
		return 1
	default:
		return -1
	}
}
