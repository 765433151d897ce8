"""Who may see pages, and how they log in and out."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from services.admin.actor import Scope
from tests.browser.conftest import Complaints, OpenPage, Site


def test_a_person_logs_in_and_out(site: Site, open_page: OpenPage) -> None:
    page = open_page("/?x=1", scopes=())
    assert page.url == f"{site.url}/login?next=/%3Fx%3D1"
    page.get_by_label("Token").fill(f" {site.make_token(Scope.READ)} ")
    page.keyboard.press("Enter")
    page.wait_for_url(f"{site.url}/?x=1")
    expect(page.get_by_role("heading", level=1)).to_have_text("Overview")
    page.get_by_role("button", name="Log out").click()
    page.wait_for_url(f"{site.url}/login")
    page.go_back()
    page.wait_for_url(f"{site.url}/login**")


@pytest.mark.parametrize("given", ["nonsense", "fm_00000000_" + "0" * 64])
def test_a_wrong_token_is_told(given: str, open_page: OpenPage, complaints: Complaints) -> None:
    page = open_page("/login", scopes=())
    page.get_by_label("Token").fill(given)
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("alert")).to_contain_text("token")
    assert given not in page.url
    complaints.clear()  # the browser logs the 401


@pytest.mark.parametrize("target", ["//evil.example", "https://evil.example", "/\\evil.example", "javascript:alert(1)"])
def test_the_login_leads_nowhere_else(target: str, site: Site, open_page: OpenPage) -> None:
    page = open_page("/login", scopes=())
    page.goto(f"/login?next={target}")
    page.get_by_label("Token").fill(site.make_token(Scope.READ))
    page.get_by_role("button", name="Log in").click()
    page.wait_for_url(f"{site.url}/")


def test_who_may_only_consume_is_told_so(open_page: OpenPage, complaints: Complaints) -> None:
    page = open_page("/", scopes=(Scope.CONSUME,))
    expect(page.get_by_role("heading", level=1)).to_have_text("Your login doesn't allow this")
    expect(page.get_by_role("main")).to_contain_text("this needs a token with the scope", ignore_case=True)
    complaints.clear()
