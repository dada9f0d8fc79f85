"""How the tests open a page."""


def opened(browser, path, width):
    """The page drawn at a width, with every console message, error and request it made."""
    page = browser.new_page(viewport={"width": width, "height": 900})
    heard, asked = [], []
    page.on("console", lambda message: heard.append(message.text))
    page.on("pageerror", lambda error: heard.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    page.goto(path.as_uri())
    page.wait_for_selector("html[data-drawn=yes]", timeout=60_000)
    return page, heard, asked
