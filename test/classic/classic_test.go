package classic_test

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/clusterextensions/operator-controller/test/classic"
	"github.com/clusterextensions/operator-controller/test/cluster"
)

func TestSamples(t *testing.T) {
	logrus.SetLevel(logrus.ErrorLevel)
	c, err := cluster.Start(t.Context(), cluster.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Stop()
	os.MkdirAll("/tmp/lab22logs", 0o700)
	o, err := classic.Install(t.Context(), c, classic.Options{Logs: "/tmp/lab22logs", Progress: os.Stderr})
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	if err := o.Start(ctx); err != nil {
		t.Fatal(err)
	}
	if err := o.InstallSamples(ctx); err != nil {
		t.Fatal(err)
	}
}
