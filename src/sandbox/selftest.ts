import type { Jail, JailLevel } from "./jail.ts";
export async function selfTest(_jail: Jail, _level: JailLevel): Promise<void> {}
