package catalogrender_test

import (
	"io"
	"os"
	"testing"

	"github.com/sirupsen/logrus"
)

func TestMain(m *testing.M) {
	logrus.SetOutput(io.Discard) // the library tells there how it reads bundles
	os.Exit(m.Run())
}
