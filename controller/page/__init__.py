"""The controller's page, as the browser gets it: controller/http/page.py serves it."""
