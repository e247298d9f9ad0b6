package storeddata_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"runtime/metrics"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/clusterextensions/operator-controller/internal/preflight/storeddata"
	"github.com/clusterextensions/operator-controller/internal/testkit"
)

const (
	benchmarkObjects = 5000
	// One object in so many has hosts that only the old schema lets pass.
	everyOffender = 50
)

// BenchmarkValidate5000 is a scan of 5,000 objects, from the definitions to the
// report, with what decoding the pages costs. It reports the heap that it needs at
// most beyond what there was before.
func BenchmarkValidate5000(b *testing.B) {
	b.Run("rules", func(b *testing.B) {
		old, updated := gateways(b, 64), gateways(b, 63)
		benchmarkScan(b, old, updated, gateway)
	})
	b.Run("large schema", func(b *testing.B) {
		old := corpusDefinition(b, "strimzi-kafka-operator/0.49.0/manifests/kafkas.kafka.strimzi.io.crd.yaml")
		updated := corpusDefinition(b, "strimzi-kafka-operator/1.0.0/manifests/kafkas.kafka.strimzi.io.crd.yaml")
		// The version that the new definition drops must be stored no more.
		for i := range old.Spec.Versions {
			old.Spec.Versions[i].Storage = old.Spec.Versions[i].Name == "v1"
		}
		old.Status.StoredVersions = []string{"v1"}
		benchmarkScan(b, old, updated, kafka)
	})
}

func benchmarkScan(b *testing.B, old, updated *apiextensionsv1.CustomResourceDefinition, object func(i int) string) {
	b.Helper()
	lister := encoded{object: object}
	b.ReportAllocs()
	for b.Loop() {
		peak, before := watchHeap(), cpuSeconds(b)
		v, err := storeddata.New(b.Context(), old, updated)
		if err != nil {
			b.Fatal(err)
		}
		report, err := storeddata.Scan(b.Context(), lister, v)
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(peak())/(1<<20), "peak-MiB")
		b.ReportMetric(cpuSeconds(b)-before, "cpu-s")
		if report.Objects != benchmarkObjects || !report.Complete() {
			b.Fatalf("got %+v", report)
		}
		b.ReportMetric(float64(report.Affected), "affected")
		if testing.Verbose() && len(report.Offenders) > 0 {
			b.Log(report.Offenders[0])
		}
	}
}

// encoded is a lister whose pages are decoded from JSON, as a client's are.
type encoded struct{ object func(i int) string }

func (e encoded) List(_ context.Context, options metav1.ListOptions) (io.ReadCloser, error) {
	from, _ := strconv.Atoi(options.Continue)
	to := min(from+int(options.Limit), benchmarkObjects)
	items := make([]string, 0, to-from)
	for i := from; i < to; i++ {
		items = append(items, e.object(i))
	}
	next := ""
	if to < benchmarkObjects {
		next = strconv.Itoa(to)
	}
	list := `{"apiVersion":"v1","kind":"List","metadata":{"continue":"` + next + `"},"items":[` + strings.Join(items, ",") + `]}`
	return io.NopCloser(strings.NewReader(list)), nil
}

// watchHeap samples the heap until it is asked for the most that was added.
func watchHeap() (peak func() uint64) {
	runtime.GC()
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	read := func() uint64 {
		metrics.Read(sample)
		return sample[0].Value.Uint64()
	}
	before, most := read(), uint64(0)
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		ticker := time.NewTicker(time.Millisecond)
		defer ticker.Stop()
		for {
			select {
			case <-stop:
				return
			case <-ticker.C:
				most = max(most, read())
			}
		}
	}()
	return func() uint64 {
		close(stop)
		<-done
		return max(most, before) - before
	}
}

// cpuSeconds is what the process has worked, whoever else uses the machine.
func cpuSeconds(b *testing.B) float64 {
	b.Helper()
	var usage unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano()).Seconds()
}

// gateways is a definition of the size that hand-written ones have, with rules on
// objects, on items of lists and on values of maps.
func gateways(tb testing.TB, hostLength int) *apiextensionsv1.CustomResourceDefinition {
	tb.Helper()
	return definition("gateways", version(tb, "v1", `
type: object
properties:
  spec:
    type: object
    required: [listeners]
    x-kubernetes-validations:
    - {rule: "self.replicas >= 1 || self.paused", message: needs a replica unless it is paused}
    - {rule: "self.listeners.all(l, l.port != 80 || l.protocol == 'HTTP')", message: port 80 is for HTTP}
    properties:
      replicas: {type: integer, format: int32, default: 1}
      paused: {type: boolean, default: false}
      listeners:
        type: array
        maxItems: 32
        x-kubernetes-list-type: map
        x-kubernetes-list-map-keys: [name]
        items:
          type: object
          required: [name, port]
          x-kubernetes-validations:
          - {rule: "!has(self.tls) || self.protocol == 'HTTPS'", message: tls needs HTTPS}
          properties:
            name: {type: string, maxLength: 63, pattern: '^[a-z0-9]([-a-z0-9]*[a-z0-9])?$'}
            host: {type: string, maxLength: `+strconv.Itoa(hostLength)+`, x-kubernetes-validations: [{rule: "self.indexOf(' ') == -1"}]}
            port: {type: integer, minimum: 1, maximum: 65535}
            protocol: {type: string, enum: [HTTP, HTTPS, TCP], default: HTTP}
            tls: {type: object, properties: {secret: {type: string, maxLength: 253}}}
      weights:
        type: object
        maxProperties: 64
        additionalProperties: {type: integer, minimum: 0, x-kubernetes-validations: [{rule: self <= 1000}]}
      template:
        type: object
        x-kubernetes-preserve-unknown-fields: true
        x-kubernetes-embedded-resource: true
  status:
    type: object
    properties:
      conditions:
        type: array
        x-kubernetes-list-type: map
        x-kubernetes-list-map-keys: [type]
        items:
          type: object
          required: [type, status]
          properties:
            type: {type: string, maxLength: 316}
            status: {type: string, enum: ['True', 'False', Unknown]}
            reason: {type: string}
            message: {type: string, maxLength: 32768}
            lastTransitionTime: {type: string, format: date-time}
`))
}

func gateway(i int) string {
	host := "h.example.com"
	if i%everyOffender == 0 {
		host = strings.Repeat("h", 64)
	}
	var listeners, weights, conditions []string
	for j := range 8 {
		listeners = append(listeners, fmt.Sprintf(`{"name":"l%d","host":%q,"port":%d,"protocol":"HTTPS","tls":{"secret":"s%d"}}`, j, host, 8000+j, j))
		weights = append(weights, fmt.Sprintf(`"zone-%d":%d`, j, j*10))
	}
	for _, kind := range []string{"Ready", "Accepted", "Programmed"} {
		conditions = append(conditions, `{"type":"`+kind+`","status":"True","reason":"AsExpected","message":"all is well","lastTransitionTime":"2026-01-01T00:00:00Z"}`)
	}
	return fmt.Sprintf(`{"apiVersion":"example.com/v1","kind":"Gateway","metadata":%s,"spec":{"replicas":2,"listeners":[%s],"weights":{%s},"template":{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{"containers":[{"name":"c","image":"i"}]}}},"status":{"conditions":[%s]}}`,
		benchmarkMetadata(i), strings.Join(listeners, ","), strings.Join(weights, ","), strings.Join(conditions, ","))
}

// benchmarkMetadata has the managed fields that objects have.
func benchmarkMetadata(i int) string {
	fields := make([]string, 40)
	for j := range fields {
		fields[j] = fmt.Sprintf(`"f:field%d":{"f:nested":{}}`, j)
	}
	return fmt.Sprintf(`{"name":"o%05d","namespace":"n%d","uid":"6f1b-%d","resourceVersion":"%d","managedFields":[{"manager":"m","operation":"Apply","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{%s}}}]}`,
		i, i%20, i, i, strings.Join(fields, ","))
}

// kafka is an object with the parts that most of its kind have.
func kafka(i int) string {
	container := `{"env":[{"name":"A","value":"a"},{"name":"B","value":"b"}],"securityContext":{"runAsNonRoot":true}}`
	pod := `{"metadata":{"labels":{"team":"t"},"annotations":{"a":"b"}},"tolerations":[{"key":"k","operator":"Equal","value":"v","effect":"NoSchedule"}],"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"k","operator":"In","values":["a","b"]}]}]}}}}`
	listeners := `[{"name":"plain","port":9092,"type":"internal","tls":false},{"name":"tls","port":9093,"type":"internal","tls":true,"authentication":{"type":"tls"}},{"name":"external","port":9094,"type":"route","tls":true,"configuration":{"bootstrap":{"host":"b.example.com"},"brokers":[{"broker":0,"host":"a.example.com"},{"broker":1,"host":"c.example.com"}]}}]`
	return fmt.Sprintf(`{"apiVersion":"kafka.strimzi.io/v1","kind":"Kafka","metadata":%s,"spec":{"kafka":{"version":"4.1.0","listeners":%s,"config":{"offsets.topic.replication.factor":3,"default.replication.factor":3},"rack":{"topologyKey":"zone"},"template":{"pod":%s,"kafkaContainer":%s}},"entityOperator":{"topicOperator":{},"userOperator":{"reconciliationIntervalMs":60000},"template":{"pod":%s}},"cruiseControl":{"template":{"pod":%s}}},"status":{"observedGeneration":3,"conditions":[{"type":"Ready","status":"True","lastTransitionTime":"2026-01-01T00:00:00Z"}],"listeners":[{"name":"tls","addresses":[{"host":"a","port":9093}],"bootstrapServers":"a:9093"}]}}`,
		benchmarkMetadata(i), listeners, pod, container, pod, pod)
}

func corpusDefinition(tb testing.TB, file string) *apiextensionsv1.CustomResourceDefinition {
	tb.Helper()
	data, err := os.ReadFile(filepath.Join(testkit.Corpus(tb), "bundles", file))
	if err != nil {
		tb.Skip("not in the corpus: ", err)
	}
	data, err = yaml.YAMLToJSON(data)
	if err != nil {
		tb.Fatal(err)
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := json.Unmarshal(data, crd); err != nil {
		tb.Fatal(err)
	}
	return crd
}
