// Before anything is painted: there are scripts, so a Job's page has tabs, and this one is open (mirror/page/tabs.py).
"use strict";
document.documentElement.dataset.tab =
  /^#(timeline|pods|logs|events|yaml|commands)$/.exec(location.hash)?.[1] || "timeline";
