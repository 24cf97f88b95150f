"""The controller's page, which controller/http/page.py serves."""
