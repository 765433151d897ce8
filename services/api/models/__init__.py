"""What goes over HTTP: bodies of requests and answers. The command line reads answers with them, too."""
