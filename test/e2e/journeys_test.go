package e2e_test

import (
	"flag"
	"strings"
	"testing"
)

// journeys are the tests that run with -short, which is what make test runs: what users do
// first, on a real cluster. All others run with make test-long.
var journeys = []string{
	"TestColdStart",                      // restart
	"TestDeathInTheMiddle",               // restart in the middle of an installation
	"TestForeignObjectsBlockAndAreNamed", // conflict
	"TestGarbageCatalogHurtsNobodyAndHeals",
	"TestGrantedRightsAreTakenUpAtOnce", // missing permission
	"TestInstalledContentIsKeptWhileAnUpgradeIsImpossible",
	"TestInstalledContentIsKeptWithoutACatalog", // catalog gone
	"TestL5InstallWithOneCommand",               // kubectl extension install
	"TestSampleOperator",                        // install, drift, upgrade, uninstall
	"TestServiceAccountWithoutRightsHeals",
	"TestUninstallWithoutTheServiceAccount",
	"TestUnchangedExtensionCostsNothing",
	"TestUpgradeFollowsTheCatalog",
	"TestUpgradeThatBreaksStoredObjectsWaits", // CRD upgrade safety
	"TestUpgradeWithMoreRightsWaitsForApproval",
	"TestWebhooksWithoutACertificateManager",
}

// chooseJourneys makes a run with -short one of the journeys, unless it names tests.
func chooseJourneys() error {
	if run := flag.Lookup("test.run"); testing.Short() && run.Value.String() == "" {
		return run.Value.Set("^(" + strings.Join(journeys, "|") + ")$")
	}
	return nil
}
