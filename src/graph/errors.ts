// Errors of the graph compiler. They mean that a graph was built or fed wrongly, which is a fault of the calling code.
import { WhetstoneError } from "../core/errors.ts";

export class GraphError extends WhetstoneError {}
