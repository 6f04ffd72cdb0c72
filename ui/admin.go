package ui

// adminRoutes are for administrators.
func adminRoutes() []Route { return nil }
