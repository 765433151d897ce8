"""What keeps Feedmill from working here: settings, servers, machine. Each finding says what to do."""
