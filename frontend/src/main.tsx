/** Where the page begins. */
import { createRoot } from "react-dom/client";
import { App } from "./panels/app";
import "./ui/base.css";

createRoot(document.getElementById("page") as HTMLElement).render(<App />);
