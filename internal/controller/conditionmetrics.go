package controller

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// conditionGauges tell of the conditions of all objects of a kind, as a GaugeVec would. They are
// most of the series there are: a GaugeVec takes about 360 bytes for each all the time, and
// these are made when somebody looks.
type conditionGauges struct {
	description *prometheus.Desc
	types       []string

	// object is the label with the name of the object.
	object string

	mu sync.Mutex

	// values are those of the types, in their order, by object.
	values map[string][]int8
}

func newConditionGauges(name, help, object string, types []string) *conditionGauges {
	return &conditionGauges{
		description: prometheus.NewDesc(prometheus.BuildFQName(metricsNamespace, "", name), help, []string{object, labelType}, nil),
		types:       types,
		object:      object,
		values:      map[string][]int8{},
	}
}

// set takes in the conditions of an object.
func (g *conditionGauges) set(object string, conditions []metav1.Condition) {
	values := make([]int8, len(g.types))
	for i, kind := range g.types {
		values[i] = valueOf(meta.FindStatusCondition(conditions, kind))
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.values[object] = values
}

func (g *conditionGauges) Describe(descriptions chan<- *prometheus.Desc) {
	descriptions <- g.description
}

func (g *conditionGauges) Collect(metrics chan<- prometheus.Metric) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for object, values := range g.values {
		for i, value := range values {
			metrics <- prometheus.MustNewConstMetric(g.description, prometheus.GaugeValue, float64(value), object, g.types[i])
		}
	}
}

// DeletePartialMatch drops the series of the object among the labels, and gives their
// number.
func (g *conditionGauges) DeletePartialMatch(labels prometheus.Labels) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	dropped := len(g.values[labels[g.object]])
	delete(g.values, labels[g.object])
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
