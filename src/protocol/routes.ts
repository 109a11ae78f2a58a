// Where everything is: every route of the API by name. Every path follows the base URL, whose own path may be a prefix.
import type { z } from "zod";
import { futureRoutes } from "./futures.ts";
import { restRoutes } from "./rest.ts";
import { samplingRoutes } from "./sampling.ts";
import { sessionRoutes } from "./session.ts";
import { trainingRoutes } from "./training.ts";

export const apiPrefix = "/api/v1";
export const jsonType = "application/json";
export const protobufType = "application/x-protobuf";

export const routes = { ...sessionRoutes, ...trainingRoutes, ...samplingRoutes, ...futureRoutes, ...restRoutes };
export type Routes = typeof routes;
export type RouteName = keyof Routes;

/** The routes that accept an operation, whose result is polled for. */
export type OperationRoute = {
  [Name in RouteName]: Routes[Name]["result"] extends z.ZodType ? Name : never;
}[RouteName];

/** What a poll's X-Tinker-Request-Type header calls the operation. */
export const operationType = (route: OperationRoute): string => route[0]!.toUpperCase() + route.slice(1);
