// Package monitoring reads what config has for Prometheus and Grafana, and runs Prometheus
// with it. It changes nothing on a cluster.
package monitoring
