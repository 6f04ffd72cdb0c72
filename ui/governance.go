package ui

// governanceRoutes show the governance report, checkpoints and stop switches.
func governanceRoutes() []Route { return nil }
