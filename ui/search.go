package ui

func searchRoutes() []Route { return nil }
